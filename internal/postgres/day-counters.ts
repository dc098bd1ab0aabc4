/** The counters of a buffer's day: their columns, and their sums over rows, histograms element by element. */

import type { PendingQuery, Row } from 'postgres'
import { deliveryDurationBounds, timeToFlushBounds } from '../domain/histogram.ts'
import type { Queryable } from './connection.ts'

/** In the order of `sumsOfCounters`. */
export function counterColumns(db: Queryable): PendingQuery<Row[]> {
  return db`ingest_count, delivered, dead, retries, items_delivered, items_dead, time_to_flush, delivery_duration`
}

/** An aggregate that is as fast as that of plain numbers; a row without the array adds nothing. */
export function sumsOfCounters(db: Queryable): PendingQuery<Row[]> {
  return db`sum(ingest_count)::bigint AS ingest_count, sum(delivered)::bigint AS delivered,
    sum(dead)::bigint AS dead, sum(retries)::bigint AS retries,
    sum(items_delivered)::bigint AS items_delivered, sum(items_dead)::bigint AS items_dead,
    ${sumOfCounts(db, 'time_to_flush', timeToFlushBounds.length)} AS time_to_flush,
    ${sumOfCounts(db, 'delivery_duration', deliveryDurationBounds.length)} AS delivery_duration`
}

function sumOfCounts(db: Queryable, column: string, buckets: number): PendingQuery<Row[]> {
  const sums = Array.from(
    { length: buckets },
    (_, index) => `coalesce(sum(${column}[${index + 1}]), 0)::bigint`,
  )
  return db`ARRAY[${db.unsafe(sums.join(', '))}]`
}

/** A row of `ingest_days` as one of counters. */
export function ingestCounters(db: Queryable): PendingQuery<Row[]> {
  return db`ingest_count, 0 AS delivered, 0 AS dead, 0 AS retries, 0 AS items_delivered, 0 AS items_dead,
    NULL::bigint[] AS time_to_flush, NULL::bigint[] AS delivery_duration`
}

/** A row of `delivery_days` as one of counters. */
export function deliveryCounters(db: Queryable): PendingQuery<Row[]> {
  return db`0 AS ingest_count, delivered, dead, retries, items_delivered, items_dead,
    time_to_flush, delivery_duration`
}
