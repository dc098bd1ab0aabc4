import type { BufferRecord } from '../../../internal/domain/model.ts'

/**
 * Buffers: an ordinary one, one that is disabled and enabled again, one with a concurrency of 2 that may be lowered,
 * one that is deleted while disabled, one that is deleted while enabled.
 */
export const BUFFERS = {
  plain: '11111111-1111-4111-8111-111111111111',
  paused: '11111111-1111-4111-8111-222222222222',
  parallel: '11111111-1111-4111-8111-333333333333',
  deleted: '11111111-1111-4111-8111-444444444444',
  removed: '11111111-1111-4111-8111-555555555555',
} as const

/** `delayMs`: between two flushes of a group. */
export function record(uid: string, concurrency = 1, delayMs = 0): BufferRecord {
  return {
    uid,
    version: 1,
    deleted: false,
    suspended: false,
    buffer: {
      bufferId: 'b',
      customerId: 'c',
      projectId: 'p',
      name: 'b',
      enabled: true,
      groupKey: { mode: 'jsonpath', path: '$.k' },
      batch: { maxItems: 3, maxBytes: 400, idleTimeoutMs: 150, maxWaitFromFirstMs: 400 },
      overflow: { maxGroupItems: 5, maxGroupBytes: 2_000, policy: 'flush_early_then_continue' },
      delivery: { url: 'http://127.0.0.1/', method: 'POST', idempotencyHeader: 'x-idempotency-key' },
      throughput: {
        maxAttempts: 3,
        backoff: { initialMs: 60, maxMs: 500, multiplier: 2 },
        minDelayBetweenFlushMs: delayMs,
        maxConcurrencyPerGroup: concurrency,
      },
      dlqPauseThreshold: 3,
      analytics: { sampleDeliveryLogs: 0 },
      consecutiveDlqCount: 0,
      createdAt: 0,
      updatedAt: 0,
    },
  }
}
