/** What a caller sends, by operation. Every operation with a body has one. */

const BUFFER = {
  bufferId: 'shop-orders',
  projectId: 'shop',
  name: 'Orders',
  groupKey: { mode: 'jsonpath', path: '$.customer' },
  batch: { maxItems: 50, idleTimeoutMs: 1000 },
  delivery: { url: 'https://hooks.shop.example/orders', signing: { secret: 's3cret' } },
}

const CANCELLATION = { reason: 'The shop is closed.' }

const requestExamples: Readonly<Record<string, unknown>> = {
  ingest: { customer: 'ada', order: 1 },
  receiveNotification: { id: 'evt_1', type: 'invoice.paid' },
  createCustomer: { customerId: 'acme', name: 'Acme' },
  createProject: { projectId: 'shop', name: 'Shop' },
  updateProject: { name: 'Web shop' },
  createBuffer: BUFFER,
  updateBuffer: { enabled: true, batch: { maxItems: 100 }, delivery: { signing: null } },
  cloneBuffer: { name: 'Orders of the new shop' },
  testBuffer: { payload: { customer: 'ada', order: 1 } },
  createApiKey: { name: 'deploy', role: 'member', projectIds: ['shop'] },
  addCredits: { amount: 1000 },
  cancelSubscription: CANCELLATION,
  cancelSubscriptionNow: CANCELLATION,
  retryDeadLetter: { customerId: 'acme' },
}

/** Throws where there is none. */
export function requestExample(operationId: string): unknown {
  const example = requestExamples[operationId]
  if (example === undefined) throw new Error(`the request of ${operationId} has no example`)
  return example
}
