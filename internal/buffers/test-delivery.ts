/**
 * The test of a buffer (docs/reference/api.md, "Buffers"): one delivery of one item, as a batch of
 * the buffer would be delivered, signature and headers included. It costs no credits and counts nowhere, and
 * whether the buffer is enabled does not matter.
 */

import { ServiceError } from '../domain/errors.ts'
import { idempotencyKey } from '../domain/group.ts'
import type { Buffer as BufferResource } from '../domain/model.ts'
import { type Principal, scopeOf } from '../domain/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import type { TokenBuckets } from '../runtime/token-buckets.ts'
import type { AttemptResult, BufferStore, Deliveries } from './ports.ts'

/** Longest wait for a connection to the destination, ms. */
const WAIT_MS = 5_000
const GROUP_KEY = 'test'

/** What came of it. `statusCode`: 0 without a response. `responseBody`: at most its first 4 KB. */
export interface TestReport {
  success: boolean
  statusCode: number
  durationMs: number
  responseBody: string | null
  error: string | null
}

export interface TestDelivery {
  /**
   * `payload`: valid JSON in UTF-8, sent as it is. A failed attempt is an answer too. Refusals are 404, 429, and 503 for a
   * secret that cannot be read.
   */
  test(principal: Principal, bufferId: string, payload: Uint8Array): Promise<TestReport>
}

export interface TestDeliveryOptions {
  buffers: Pick<BufferStore, 'find'>
  deliveries: Deliveries
  clock: Clock
  /** A random UUID. */
  newId: () => string
  /** By uid of the buffer: a caller chooses payload and destination, so the service must be no cannon. */
  buckets: Pick<TokenBuckets, 'take'>
  /** A test was refused for their number. */
  onLimited: () => void
}

export function createTestDelivery(options: TestDeliveryOptions): TestDelivery {
  const { buffers, deliveries, clock, newId, buckets, onLimited } = options
  return {
    async test(principal, bufferId, payload) {
      const record = await buffers.find(scopeOf(principal), bufferId)
      if (record === undefined) throw new ServiceError('bufferNotFound')
      if (record.unreadable?.delivery) throw new ServiceError('secretUnreadable')
      const waitMs = buckets.take(record.uid)
      if (waitMs > 0) {
        onLimited()
        throw new ServiceError('testRate', {}, { retryAfterMs: waitMs })
      }
      const groupId = `test-${newId()}`
      const item = { messageId: newId(), receivedAt: clock.now() }
      const result = await deliveries.send(
        record.buffer.delivery,
        idempotencyKey(groupId, 0),
        testBody(record.buffer, groupId, item, payload),
        // Of its own, so that the batches that wait for this destination do not come first.
        {
          flow: `test ${record.uid}`,
          customerId: record.buffer.customerId,
          maxWaitMs: WAIT_MS,
          readsBody: true,
        },
      )
      return reportOf(result)
    },
  }
}

/** A delivery batch of one item. Its group is none of the buffer's: the real group "test" has another hash. */
function testBody(
  { customerId, projectId, bufferId }: BufferResource,
  groupHash: string,
  item: { messageId: string; receivedAt: number },
  payload: Uint8Array,
): Buffer {
  const { receivedAt } = item
  const head = {
    svc: { customerId, projectId, bufferId, groupKey: GROUP_KEY, groupHash, segment: 0 },
    window: { firstItemAt: receivedAt, lastActivityAt: receivedAt, itemsCount: 1 },
  }
  const before = `${JSON.stringify(head).slice(0, -1)},"items":[${JSON.stringify(item).slice(0, -1)},"payload":`
  return Buffer.concat([Buffer.from(before), payload, Buffer.from('}]}')])
}

function reportOf({ delivered, statusCode, durationMs, responseBody, error }: AttemptResult): TestReport {
  return { success: delivered, statusCode, durationMs, responseBody, error }
}
