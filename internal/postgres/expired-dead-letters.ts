/**
 * Dead letters that the installation's retention or quota lets go, customer by customer: an index by age alone would
 * tempt the planner to read the lists of customers by it. The trigger of a removal leaves tombstones. A suspended customer
 * can retry nothing, so its retention stands still, and begins anew with the resume.
 */
import type { PendingQuery, Row } from 'postgres'
import type { ExpiredDeadLetters } from '../dlq/ports.ts'
import type { Database, Transaction } from './connection.ts'

/** Longer than a request may take, but a stop waits for it, ms. */
const STATEMENT_MS = 5_000

/** So long after its last part an upload counts as abandoned; its owner would only send its parts again. */
const ABANDONED_AFTER = '1 hour'

/**
 * Bytes of payloads that one statement removes, about: bodies of 16 MB are deleted at some 100 MB/s, and a slow disk may
 * need several times as long.
 */
const BYTES_AT_ONCE = 64 * 1024 * 1024

export function createExpiredDeadLetters(db: Database): ExpiredDeadLetters {
  return {
    removeOlder: (before, limit) =>
      remove(
        db,
        db`
          SELECT i.dlq_id, i.payload_bytes FROM customers c CROSS JOIN LATERAL (
            SELECT dlq_id FROM dlq_items
            WHERE customer_id = c.customer_id AND created_at < ${before} AND ${idle(db)}
            ORDER BY created_at LIMIT ${limit}
          ) AS old JOIN dlq_items i USING (dlq_id)
          WHERE NOT EXISTS (
            SELECT FROM suspensions s WHERE s.customer_id = c.customer_id
              AND (resumed_at IS NULL OR extract(epoch FROM resumed_at) * 1000 >= ${before}))
          LIMIT ${limit} FOR UPDATE OF i SKIP LOCKED`,
      ),
    removeBeyond: (quota, limit) =>
      remove(
        db,
        db`
          SELECT i.dlq_id, i.payload_bytes FROM (
            SELECT customer_id FROM dlq_items GROUP BY customer_id HAVING count(*) > ${quota}
          ) AS c CROSS JOIN LATERAL (
            SELECT dlq_id FROM dlq_items
            WHERE customer_id = c.customer_id ORDER BY created_at DESC, dlq_id DESC OFFSET ${quota}
          ) AS beyond JOIN dlq_items i USING (dlq_id)
          WHERE ${idle(db)} LIMIT ${limit} FOR UPDATE OF i SKIP LOCKED`,
      ),
    removeAbandoned: (limit) => bounded(db, (transaction) => removeAbandoned(transaction, limit)),
  }
}

/** Of the dead letters that `expired` locks as many as are removed in time, at least one. */
function remove(db: Database, expired: PendingQuery<Row[]>): Promise<number> {
  return bounded(
    db,
    (transaction) => transaction`
      WITH expired AS (${expired}),
        summed AS (
          SELECT dlq_id, sum(payload_bytes) OVER (ORDER BY dlq_id) - payload_bytes AS before FROM expired)
      DELETE FROM dlq_items WHERE dlq_id IN (SELECT dlq_id FROM summed WHERE before < ${BYTES_AT_ONCE})`,
  )
}

/** Looks for their dead letters once they are locked: from then on none can refer to them. */
async function removeAbandoned(transaction: Transaction, limit: number): Promise<{ count: number }> {
  const unreferred = transaction`NOT EXISTS (SELECT FROM dlq_items i WHERE i.body_id = b.body_id)`
  const locked = await transaction<{ bodyId: number }[]>`
    SELECT body_id AS "bodyId" FROM dlq_bodies b
    WHERE touched_at < now() - ${ABANDONED_AFTER}::interval AND ${unreferred}
    LIMIT ${limit} FOR UPDATE SKIP LOCKED`
  if (locked.length === 0) return locked
  const bodyIds = locked.map(({ bodyId }) => bodyId)
  return transaction`DELETE FROM dlq_bodies b WHERE body_id = ANY (${bodyIds}::bigint[]) AND ${unreferred}`
}

function bounded(
  db: Database,
  removal: (transaction: Transaction) => PromiseLike<{ count: number }>,
): Promise<number> {
  return db.begin(async (transaction) => {
    await transaction`SELECT set_config('statement_timeout', ${`${STATEMENT_MS}`}, true)`
    return (await removal(transaction)).count
  })
}

/** Nobody tries it again at this moment. */
function idle(db: Database) {
  return db`(retry_until IS NULL OR retry_until <= clock_timestamp())`
}
