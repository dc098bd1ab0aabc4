/** Manual retries of dead letters: one SQL operation a function. Leases run by the database's clock alone. */

import type { RetryClaim, RetryDestination, RetryStore } from '../dlq/ports.ts'
import { type BufferRow, recordOf } from './buffer-rows.ts'
import type { Database } from './connection.ts'
import type { SecretBox } from './secrets.ts'

export function createRetryStore(db: Database, box: SecretBox): RetryStore {
  return {
    destination: (dlqId) => destinationOf(db, box, dlqId),
    claim: (dlqId, leaseMs) => claim(db, dlqId, leaseMs),
    fail: (dlqId, retryId, failure) => fail(db, dlqId, retryId, failure),
  }
}

/** By the uid: another buffer under the same id has nothing to do with the item. */
async function destinationOf(
  db: Database,
  box: SecretBox,
  dlqId: string,
): Promise<RetryDestination | 'unreadable' | undefined> {
  const [row] = await db<BufferRow[]>`
    SELECT b.* FROM dlq_items i JOIN buffers b ON b.uid = i.buffer_uid
    WHERE i.dlq_id = ${dlqId} AND b.deleted_at IS NULL`
  if (row === undefined) return undefined
  const { buffer, unreadable } = recordOf(box, row)
  return unreadable?.delivery ? 'unreadable' : { bufferUid: row.uid, delivery: buffer.delivery }
}

async function claim(
  db: Database,
  dlqId: string,
  leaseMs: number,
): Promise<RetryClaim | 'running' | undefined> {
  // Of several at once the first to lock the row wins; the others see its lease when they come to it.
  const [taken] = await db<RetryClaim[]>`
    UPDATE dlq_items SET
      retry_id = gen_random_uuid(),
      retry_until = clock_timestamp() + ${leaseMs}::int * interval '1 millisecond'
    WHERE dlq_id = ${dlqId} AND (retry_until IS NULL OR retry_until <= clock_timestamp())
    RETURNING retry_id AS "retryId"`
  if (taken) return taken
  const found = await db`SELECT FROM dlq_items WHERE dlq_id = ${dlqId}`
  return found.length > 0 ? 'running' : undefined
}

async function fail(
  db: Database,
  dlqId: string,
  retryId: string,
  { lastError, lastStatusCode, lastResponse }: Parameters<RetryStore['fail']>[2],
): Promise<number | undefined> {
  const own = db`retry_id IS NOT DISTINCT FROM ${retryId}::uuid`
  const [row] = await db<{ retry_count: number }[]>`
    UPDATE dlq_items SET
      retry_count = retry_count + 1,
      last_error = CASE WHEN ${own} THEN ${lastError.replaceAll('\0', '\ufffd')} ELSE last_error END,
      last_status_code = CASE WHEN ${own} THEN ${lastStatusCode}::int ELSE last_status_code END,
      last_response = CASE WHEN ${own} THEN ${lastResponse} ELSE last_response END,
      last_retry_at = CASE WHEN ${own}
        THEN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint ELSE last_retry_at END,
      retry_until = CASE WHEN ${own} THEN NULL ELSE retry_until END,
      retry_id = CASE WHEN ${own} THEN NULL ELSE retry_id END
    WHERE dlq_id = ${dlqId} RETURNING retry_count`
  return row?.retry_count
}
