/**
 * Delivery counters as a projection of the journal (docs/architecture/protocol.md, "Counters"): increments and
 * position are one fenced transaction, so every fact counts exactly once.
 */

import type { CommitName } from '../shard/journal/commit-name.ts'
import type { DeliveryFact, Fence, Projection } from '../shard/ports.ts'
import type { Database, Transaction } from './connection.ts'
import { sumByBuffer, sumByDay } from './delivery-sums.ts'
import { fencedTransaction } from './shards.ts'

export function createProjection(db: Database): Projection {
  return {
    async position(shard) {
      const [row] = await db<{ position: number }[]>`
        SELECT position FROM projections WHERE shard = ${shard}`
      return row?.position ?? 0
    },
    project: (fence, position, facts) =>
      fencedTransaction(db, fence, async (transaction) => {
        if (!(await advance(transaction, fence, position)) || facts.length === 0) return
        // All shards of a busy buffer count in the same rows, and dead letters wait for it: written at once, so that
        // their locks are not held while answers travel to this node.
        await Promise.all([addDays(transaction, facts), ...resetConsecutive(transaction, facts)])
      }),
  }
}

/**
 * Forgets how far journals were counted that were replaced and never held an item: `before`, Unix ms, is older than their
 * successors, whose positions are microseconds.
 */
export async function forgetPositions(db: Database, before: number): Promise<void> {
  await db`DELETE FROM projections WHERE position < ${before * 1_000}`
}

/** false: the facts up to this position are counted. The row stays locked, so a second caller sees that. */
async function advance(
  transaction: Transaction,
  { shard }: Fence,
  { seq, identity }: CommitName,
): Promise<boolean> {
  const advanced = await transaction`
    INSERT INTO projections AS p (shard, position, identity) VALUES (${shard}, ${seq}, ${identity})
    ON CONFLICT (shard) DO UPDATE SET position = excluded.position, identity = excluded.identity
      WHERE p.position < excluded.position
    RETURNING position`
  return advanced.length > 0
}

function addDays(transaction: Transaction, facts: readonly DeliveryFact[]): PromiseLike<unknown> {
  return transaction`
    INSERT INTO delivery_days AS d
      (buffer_uid, customer_id, day, delivered, dead, retries, items_delivered, items_dead,
        time_to_flush, delivery_duration)
    SELECT "bufferUid", (SELECT customer_id FROM buffer_owners WHERE buffer_uid = "bufferUid"), day,
      delivered, dead, retries, "itemsDelivered", "itemsDead", "timeToFlush", "deliveryDuration"
    FROM json_to_recordset(${JSON.stringify(sumByDay(facts))}::text::json) AS s (
      "bufferUid" uuid, day date, delivered bigint, dead bigint, retries bigint, "itemsDelivered" bigint,
      "itemsDead" bigint, "timeToFlush" bigint[], "deliveryDuration" bigint[])
    ON CONFLICT (buffer_uid, day) DO UPDATE SET
      delivered = d.delivered + excluded.delivered,
      dead = d.dead + excluded.dead,
      retries = d.retries + excluded.retries,
      items_delivered = d.items_delivered + excluded.items_delivered,
      items_dead = d.items_dead + excluded.items_dead,
      time_to_flush = add_counts(d.time_to_flush, excluded.time_to_flush),
      delivery_duration = add_counts(d.delivery_duration, excluded.delivery_duration)`
}

/**
 * A delivered batch ends the row of dead ones before it, not those after it. `write` of dead letters has counted dead batches
 * that the projection may not have come to: `dead_buried` minus those seen up to the last delivered one is
 * what died since. It only ever lowers the count: a user may have reset it meanwhile.
 */
function resetConsecutive(transaction: Transaction, facts: readonly DeliveryFact[]): PromiseLike<unknown>[] {
  const sums = JSON.stringify(sumByBuffer(facts))
  const concerned = transaction`
    json_to_recordset(${sums}::text::json)
      AS s ("bufferUid" uuid, dead bigint, "deadBeforeDelivered" bigint)
    WHERE b.uid = s."bufferUid" AND (s.dead > 0 OR b.consecutive_dlq_count > 0)`
  return [
    transaction`SELECT FROM buffers b, ${concerned} ORDER BY b.uid FOR NO KEY UPDATE OF b`,
    transaction`
      UPDATE buffers b SET
        dead_projected = b.dead_projected + s.dead,
        consecutive_dlq_count = CASE WHEN s."deadBeforeDelivered" IS NULL THEN b.consecutive_dlq_count
          ELSE least(b.consecutive_dlq_count,
            greatest(0, b.dead_buried - b.dead_projected - s."deadBeforeDelivered")) END
      FROM ${concerned}`,
  ]
}
