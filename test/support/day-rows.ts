/** Counters of one buffer's day, as ledger and projection leave them. */
import { deliveryDurationBounds, timeToFlushBounds } from '../../internal/domain/histogram.ts'
import type { Database } from '../../internal/postgres/connection.ts'

export interface DayRow {
  ingested?: number
  delivered?: number
  dead?: number
  retries?: number
  itemsDelivered?: number
  itemsDead?: number
  /** Counts by index of the bucket. */
  timeToFlush?: Record<number, number>
  deliveryDuration?: Record<number, number>
}

/** `day`: `YYYY-MM-DD`. */
export async function insertDay(
  db: Database,
  buffer: { uid: string; customerId: string },
  day: string,
  row: DayRow,
): Promise<void> {
  const { uid, customerId } = buffer
  const { ingested = 0, delivered = 0, dead = 0, retries = 0, itemsDelivered = 0, itemsDead = 0 } = row
  await db`INSERT INTO ingest_days (buffer_uid, day, customer_id, ingest_count)
    VALUES (${uid}, ${day}, ${customerId}, ${ingested})`
  await db`INSERT INTO delivery_days (buffer_uid, day, customer_id, delivered, dead, retries,
      items_delivered, items_dead, time_to_flush, delivery_duration)
    VALUES (${uid}, ${day}, ${customerId}, ${delivered}, ${dead}, ${retries}, ${itemsDelivered}, ${itemsDead},
      ${counts(timeToFlushBounds, row.timeToFlush)}::text::bigint[],
      ${counts(deliveryDurationBounds, row.deliveryDuration)}::text::bigint[])`
}

function counts(bounds: readonly number[], given: Record<number, number> = {}): string {
  return `{${bounds.map((_, bucket) => given[bucket] ?? 0).join(',')}}`
}
