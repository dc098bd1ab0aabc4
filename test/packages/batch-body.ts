/** The body of a delivery with these payloads; the ids are `m0`, `m1` … */
export function batchBody(payloads: readonly unknown[]) {
  const svc = {
    customerId: 'acme',
    projectId: 'shop',
    bufferId: 'orders',
    groupKey: 'ada',
    groupHash: 'LPJNul',
  }
  return {
    svc: { ...svc, segment: 0 },
    window: {
      firstItemAt: 1_764_000_000_000,
      lastActivityAt: 1_764_000_000_400,
      itemsCount: payloads.length,
    },
    items: payloads.map((payload, index) => ({
      messageId: `m${index}`,
      receivedAt: 1_764_000_000_000,
      payload,
    })),
  }
}
