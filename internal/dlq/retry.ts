/**
 * Manual retry of a dead letter (docs/reference/api.md, "Dead letters"): one synchronous attempt with the stored
 * bytes and their own key, to the buffer's current delivery configuration. It counts in no analytics and
 * leaves `consecutiveDlqCount` alone; that the buffer is disabled does not matter, for somebody asked.
 *
 * Invariant: of one dead letter at most one attempt runs at a time, on whatever node. The lock is a lease in
 * the database that outlasts the longest attempt, so a node that dies in the middle holds it for half a minute
 * and not for ever; an attempt that could outlive its lease is not begun.
 */

import { ServiceError } from '../domain/errors.ts'
import { idempotencyKey } from '../domain/group.ts'
import { lastResponseOf } from '../domain/last-response.ts'
import type { DlqItem } from '../domain/model.ts'
import type { Principal } from '../domain/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { elapsedSince, momentOf } from '../runtime/moment.ts'
import { readItem, storedBody } from './dead-letters.ts'
import type {
  AttemptResult,
  DeadLetterStore,
  Deliveries,
  RetryDestination,
  RetryStore,
  RetryTelemetry,
} from './ports.ts'

/** Longest wait for a connection to the destination, ms. */
export const WAIT_MS = 5_000
/** An attempt takes at most so long (docs/reference/api.md, "Limits"), ms. */
const ATTEMPT_MS = 10_000
/** How long the lock is held at most: waiting, attempt, and room for a slow database, ms. */
export const LEASE_MS = 30_000
/** An attempt that begins so long after the claim, ms, still ends within the lease. */
const LATEST_START_MS = LEASE_MS - ATTEMPT_MS - 2_000

/** The 200 of a retry that the destination accepted. `durationMs`: of the attempt. */
export interface RetryReport {
  success: true
  status: 'delivered'
  message: string
  dlqId: string
  itemCount: number
  statusCode: number
  durationMs: number
}

export interface DeadLetterRetry {
  /**
   * Removes the item when the destination accepts its batch. Refusals: 403 foreign `customerId` or item, 404
   * item or buffer, 409 `payload_unavailable` or `retry_in_progress`, 502 `delivery_failed` with what happened.
   */
  retry(principal: Principal, dlqId: string, body: { customerId?: string }): Promise<RetryReport>
}

export interface DeadLetterRetryOptions {
  store: DeadLetterStore
  retries: RetryStore
  deliveries: Deliveries
  clock: Clock
  telemetry: RetryTelemetry
}

export function createDeadLetterRetry(options: DeadLetterRetryOptions): DeadLetterRetry {
  const { store, retries } = options
  return {
    async retry(principal, dlqId, { customerId = principal.customerId }) {
      if (customerId !== principal.customerId) throw new ServiceError('customerForeign')
      const item = await readItem(store, principal, dlqId)
      const destination = await retries.destination(item.dlqId)
      if (destination === undefined) throw new ServiceError('bufferNotFound')
      if (destination === 'unreadable') throw new ServiceError('secretUnreadable')
      // Before the lock is taken: over a slow line a large one takes longer than the lock may last.
      const batch = await storedBody(store, item.dlqId)
      const result = await attempt(options, item, destination, batch)
      tell(options.telemetry, item, result)
      return result.delivered ? remove(store, item, result) : fail(retries, item, result)
    },
  }
}

type Attempted = AttemptResult & { retryId: string }

async function attempt(
  { retries, deliveries, clock }: DeadLetterRetryOptions,
  item: DlqItem,
  { bufferUid, delivery }: RetryDestination,
  batch: Uint8Array,
): Promise<Attempted> {
  const began = momentOf(clock)
  const claim = await retries.claim(item.dlqId, LEASE_MS)
  if (claim === undefined) throw new ServiceError('deadLetterNotFound')
  if (claim === 'running') throw new ServiceError('retryInProgress')
  const key = idempotencyKey(item.groupId, item.batch.groupVersion)
  const result = await deliveries.send(delivery, key, batch, {
    // A flow of its own: behind the buffer's thousands of waiting batches its turn would never come.
    flow: `retry ${bufferUid}`,
    customerId: item.customerId,
    maxWaitMs: WAIT_MS,
    proceed: () => elapsedSince(clock, began) < LATEST_START_MS,
  })
  return { ...result, retryId: claim.retryId }
}

function tell(telemetry: RetryTelemetry, { dlqId, bufferId, itemCount }: DlqItem, result: Attempted): void {
  const { delivered, statusCode, error, durationMs } = result
  telemetry.retry({ dlqId, bufferId, items: itemCount, delivered, statusCode, error, durationMs })
}

/** Whoever holds the lock by now: what was accepted once is not to be sent again. */
async function remove(
  store: DeadLetterStore,
  { dlqId, itemCount }: DlqItem,
  { statusCode, durationMs }: Attempted,
): Promise<RetryReport> {
  await store.remove(dlqId)
  const message = `The destination accepted the batch of ${itemCount} ${itemCount === 1 ? 'item' : 'items'}`
  return { success: true, status: 'delivered', message, dlqId, itemCount, statusCode, durationMs }
}

async function fail(
  retries: RetryStore,
  { dlqId, itemCount, retryCount }: DlqItem,
  { retryId, statusCode, durationMs, error, errorClass, responseBody }: Attempted,
): Promise<never> {
  const lastError = error ?? 'the destination did not accept the batch'
  const lastResponse = lastResponseOf(responseBody)
  const counted = await retries.fail(dlqId, retryId, { lastError, lastStatusCode: statusCode, lastResponse })
  throw new ServiceError('deliveryFailed', {
    dlqId,
    itemCount,
    statusCode,
    durationMs,
    lastError,
    errorClass,
    // Its user removed the item meanwhile: what happened is told all the same.
    retryCount: counted ?? retryCount + 1,
  })
}
