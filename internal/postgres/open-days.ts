/**
 * Closes days (migration 030): moves rows of `ingest_days` and `delivery_days` into `closed_days`. A row that
 * is written again meanwhile waits for the move, and then is a new open row with what came late. And removes what
 * no answer needs any more.
 */

import type { PendingQuery, Row } from 'postgres'
import type { OpenDays } from '../analytics/ports.ts'
import type { Database, Transaction } from './connection.ts'
import { counterColumns, deliveryCounters, ingestCounters, sumsOfCounters } from './day-counters.ts'

/** Any fixed number; only closers take it. Two at once would wait for each other's rows in a ring. */
const LOCK = 7_036_874_418
/** A closer is in nobody's way: it may take longer than a request, ms. */
const STATEMENT_MS = 60_000

/** A range reaches back 89 days; more than that is kept, so that nobody's clock matters. */
const KEPT_DAYS = 100

export function createOpenDays(db: Database): OpenDays {
  return {
    close: (limit) => alone(db, (transaction) => closeSome(transaction, limit)),
    prune: (limit) => alone(db, (transaction) => pruneSome(transaction, limit)),
  }
}

/** 0 while another node is at it. */
function alone(db: Database, work: (transaction: Transaction) => Promise<number>): Promise<number> {
  return db.begin(async (transaction) => {
    const [lock] = await transaction<{ taken: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(${LOCK}) AS taken, set_config('statement_timeout', ${`${STATEMENT_MS}`}, true)`
    return lock?.taken ? work(transaction) : 0
  })
}

async function closeSome(transaction: Transaction, limit: number): Promise<number> {
  const [moved] = await transaction<{ rows: number }[]>`
    WITH ingested AS (${taken(transaction, 'ingest_days', ingestCounters(transaction), limit)}),
    settled AS (${taken(transaction, 'delivery_days', deliveryCounters(transaction), limit)}),
    counted AS (SELECT * FROM ingested UNION ALL SELECT * FROM settled),
    closed AS (${closing(transaction)})
    SELECT count(*) AS rows FROM counted`
  return moved?.rows ?? 0
}

/** Rows of a day before yesterday, with their owners; those of nobody stay, where nobody sees them. */
function taken(
  transaction: Transaction,
  table: 'ingest_days' | 'delivery_days',
  counters: PendingQuery<Row[]>,
  limit: number,
): PendingQuery<Row[]> {
  return transaction`
    DELETE FROM ${transaction(table)} d USING buffer_owners o
    WHERE o.buffer_uid = d.buffer_uid AND d.ctid = ANY (ARRAY(
      SELECT due.ctid FROM ${transaction(table)} due
      WHERE due.day < (now() AT TIME ZONE 'UTC')::date - 1
        AND EXISTS (SELECT FROM buffer_owners k WHERE k.buffer_uid = due.buffer_uid)
      LIMIT ${limit} FOR UPDATE SKIP LOCKED))
    RETURNING o.customer_id, o.project_id, o.buffer_id, d.day, ${counters}`
}

function closing(transaction: Transaction): PendingQuery<Row[]> {
  return transaction`
    INSERT INTO closed_days AS c (customer_id, project_id, buffer_id, day, ${counterColumns(transaction)})
    SELECT customer_id, coalesce(project_id, ''), coalesce(buffer_id, ''), day, ${sumsOfCounters(transaction)}
    FROM counted GROUP BY customer_id, day, GROUPING SETS ((), (project_id), (project_id, buffer_id))
    ON CONFLICT (customer_id, buffer_id, project_id, day) DO UPDATE SET
      ingest_count = c.ingest_count + excluded.ingest_count,
      delivered = c.delivered + excluded.delivered,
      dead = c.dead + excluded.dead,
      retries = c.retries + excluded.retries,
      items_delivered = c.items_delivered + excluded.items_delivered,
      items_dead = c.items_dead + excluded.items_dead,
      time_to_flush = add_counts(c.time_to_flush, excluded.time_to_flush),
      delivery_duration = add_counts(c.delivery_duration, excluded.delivery_duration)`
}

/**
 * A buffer's owner is asked for by what is written of it late, as long as its row is there or an open day is, and by
 * filters, as long as it has numbers.
 */
async function pruneSome(transaction: Transaction, limit: number): Promise<number> {
  const days = await transaction`
    DELETE FROM closed_days WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM closed_days WHERE day < (now() AT TIME ZONE 'UTC')::date - ${KEPT_DAYS}::int LIMIT ${limit}))`
  const owners = await transaction`
    DELETE FROM buffer_owners WHERE buffer_uid = ANY (ARRAY(
      SELECT o.buffer_uid FROM buffer_owners o
      WHERE NOT EXISTS (SELECT FROM buffers b WHERE b.uid = o.buffer_uid)
        AND NOT EXISTS (SELECT FROM ingest_days d WHERE d.buffer_uid = o.buffer_uid)
        AND NOT EXISTS (SELECT FROM delivery_days d WHERE d.buffer_uid = o.buffer_uid)
        AND NOT EXISTS (
          SELECT FROM closed_days c
          WHERE (c.customer_id, c.buffer_id, c.project_id) = (o.customer_id, o.buffer_id, o.project_id))
      LIMIT ${limit}))`
  return days.count + owners.count
}
