/** Example bodies by operation, where a schema alone leaves a reader guessing. */
const bodies: Readonly<Record<string, unknown>> = {
  ingest: { customer: 'ada', order: 1 },
  createProject: { projectId: 'shop', name: 'Shop' },
  createBuffer: {
    bufferId: 'shop-orders',
    projectId: 'shop',
    name: 'Orders',
    groupKey: { mode: 'jsonpath', path: '$.customer' },
    batch: { maxItems: 50, idleTimeoutMs: 1000 },
    delivery: { url: 'https://hooks.shop.test/orders', signing: { secret: 's3cret' } },
  },
  updateBuffer: { enabled: true, batch: { maxItems: 100 }, delivery: { signing: null } },
  createApiKey: { name: 'deploy', role: 'member', projectIds: ['shop'] },
  testBuffer: { payload: { customer: 'ada' } },
}

/** The `example` of a media type object; nothing where there is none. */
export function exampleOf(operationId: string): { example?: unknown } {
  const example = bodies[operationId]
  return example === undefined ? {} : { example }
}
