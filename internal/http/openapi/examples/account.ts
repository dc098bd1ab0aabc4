/** The account of all examples, and what it has. */

/** 2025-11-24, 16:00 UTC. */
export const AT = 1_764_000_000_000

export const CUSTOMER = {
  customerId: 'acme',
  name: 'Acme',
  enabled: true,
  credits: 9880,
  creditLimit: 10_000,
  creditsUsedThisMonth: 120,
  createdAt: AT,
}

export const PROJECT = {
  projectId: 'shop',
  customerId: 'acme',
  name: 'Shop',
  enabled: true,
  createdAt: AT,
  updatedAt: AT,
}

export const BUFFER = {
  bufferId: 'shop-orders',
  projectId: 'shop',
  customerId: 'acme',
  name: 'Orders',
  enabled: true,
  groupKey: { mode: 'jsonpath', path: '$.customer' },
  batch: { maxItems: 50, maxBytes: 262_144, idleTimeoutMs: 1000, maxWaitFromFirstMs: 15_000 },
  overflow: { maxGroupItems: 2000, maxGroupBytes: 5_242_880, policy: 'flush_early_then_continue' },
  delivery: {
    url: 'https://hooks.shop.example/orders',
    method: 'POST',
    idempotencyHeader: 'x-idempotency-key',
    signing: { type: 'hmac-sha256', secret: 's3cret', header: 'x-svc-signature' },
  },
  throughput: {
    maxAttempts: 3,
    backoff: { initialMs: 1000, maxMs: 60_000, multiplier: 2 },
    minDelayBetweenFlushMs: 0,
    maxConcurrencyPerGroup: 1,
  },
  dlqPauseThreshold: 3,
  sourceVerification: {
    enabled: false,
    signatureHeader: 'x-webhook-signature',
    algorithm: 'hmac-sha256',
  },
  analytics: { sampleDeliveryLogs: 0.05 },
  consecutiveDlqCount: 0,
  createdAt: AT,
  updatedAt: AT,
}

/** What the destination of that buffer gets. */
export const BATCH = {
  svc: {
    customerId: 'acme',
    projectId: 'shop',
    bufferId: 'shop-orders',
    groupKey: 'ada',
    groupHash: 'LPJNul-wow4m6DsqxbninA',
    segment: 0,
  },
  window: { firstItemAt: AT, lastActivityAt: AT + 400, itemsCount: 2 },
  items: [
    { messageId: 'm1', receivedAt: AT, payload: { customer: 'ada', order: 1 } },
    { messageId: 'm2', receivedAt: AT + 400, payload: { customer: 'ada', order: 2 } },
  ],
}
