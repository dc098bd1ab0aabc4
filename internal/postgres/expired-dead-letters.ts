/**
 * Dead letters that the installation's retention or quota lets go, customer by customer: an index by age alone would
 * tempt the planner to read the lists of customers by it. The trigger of a removal leaves tombstones.
 */
import type { ExpiredDeadLetters } from '../dlq/ports.ts'
import type { Database } from './connection.ts'

/** Longer than a request may take, but a stop waits for it, ms. */
const STATEMENT_MS = 5_000

/** So long after its last part an upload counts as abandoned; its owner would only send its parts again. */
const ABANDONED_AFTER = '1 hour'

export function createExpiredDeadLetters(db: Database): ExpiredDeadLetters {
  return {
    removeOlder: (before, limit) =>
      db.begin(async (transaction) => {
        await transaction`SELECT set_config('statement_timeout', ${`${STATEMENT_MS}`}, true)`
        const removed = await transaction`
          DELETE FROM dlq_items WHERE dlq_id IN (
            SELECT i.dlq_id FROM customers c CROSS JOIN LATERAL (
              SELECT dlq_id FROM dlq_items
              WHERE customer_id = c.customer_id AND created_at < ${before} AND ${idle(db)}
              ORDER BY created_at LIMIT ${limit}
            ) AS old JOIN dlq_items i USING (dlq_id)
            LIMIT ${limit} FOR UPDATE OF i SKIP LOCKED)`
        return removed.count
      }),
    removeBeyond: (quota, limit) =>
      db.begin(async (transaction) => {
        await transaction`SELECT set_config('statement_timeout', ${`${STATEMENT_MS}`}, true)`
        const removed = await transaction`
          DELETE FROM dlq_items WHERE dlq_id IN (
            SELECT i.dlq_id FROM (
              SELECT customer_id FROM dlq_items GROUP BY customer_id HAVING count(*) > ${quota}
            ) AS c CROSS JOIN LATERAL (
              SELECT dlq_id FROM dlq_items
              WHERE customer_id = c.customer_id ORDER BY created_at DESC, dlq_id DESC OFFSET ${quota}
            ) AS beyond JOIN dlq_items i USING (dlq_id)
            WHERE ${idle(db)} LIMIT ${limit} FOR UPDATE OF i SKIP LOCKED)`
        return removed.count
      }),
    // Locked by a writer that is about to refer to it, it is not abandoned.
    removeAbandoned: (limit) =>
      db.begin(async (transaction) => {
        await transaction`SELECT set_config('statement_timeout', ${`${STATEMENT_MS}`}, true)`
        const removed = await transaction`
          DELETE FROM dlq_bodies WHERE body_id IN (
            SELECT body_id FROM dlq_bodies b
            WHERE touched_at < now() - ${ABANDONED_AFTER}::interval
              AND NOT EXISTS (SELECT FROM dlq_items i WHERE i.body_id = b.body_id)
            LIMIT ${limit} FOR UPDATE SKIP LOCKED)`
        return removed.count
      }),
  }
}

/** Nobody tries it again at this moment. */
function idle(db: Database) {
  return db`(retry_until IS NULL OR retry_until <= clock_timestamp())`
}
