/**
 * Reads of analytics (migration 030): a number is the sum of open and closed rows. Each read is one
 * statement, so a day that is closed meanwhile counts once.
 */

import type { PendingQuery, Row } from 'postgres'
import type { AnalyticsFilter, AnalyticsStore, DayCounts, DayRange } from '../analytics/ports.ts'
import type { Scope } from '../domain/principal.ts'
import { refusingWhenAway } from './availability.ts'
import type { Database } from './connection.ts'
import { counterColumns, deliveryCounters, ingestCounters, sumsOfCounters } from './day-counters.ts'
import { reachable } from './scope.ts'

interface DayRow {
  day: string
  ingest_count: number
  delivered: number
  dead: number
  retries: number
  items_delivered: number
  items_dead: number
  time_to_flush: number[]
  delivery_duration: number[]
}

export function createAnalyticsStore(db: Database): AnalyticsStore {
  return refusingWhenAway<AnalyticsStore>({
    days: (scope, filter, range) => readDays(db, scope, filter, range),
    resources: (scope) => countResources(db, scope),
  })
}

async function readDays(
  db: Database,
  scope: Scope,
  filter: AnalyticsFilter,
  range: DayRange,
): Promise<DayCounts[]> {
  const open = db`customer_id = ${scope.customerId} AND day BETWEEN ${range.from} AND ${range.to}
    ${ofSomeBuffers(db, scope, filter)}`
  const rows = await db<DayRow[]>`
    SELECT day::text, ${sumsOfCounters(db)} FROM (
      SELECT day, ${ingestCounters(db)} FROM ingest_days WHERE ${open}
      UNION ALL
      SELECT day, ${deliveryCounters(db)} FROM delivery_days WHERE ${open}
      UNION ALL
      SELECT day, ${counterColumns(db)} FROM closed_days
      WHERE ${reachableLevel(db, scope, filter)} AND day BETWEEN ${range.from} AND ${range.to}
    ) AS counted
    GROUP BY day ORDER BY day`
  return rows.map(dayCountsOf)
}

/** Nothing where all of the customer's are meant: the rows say whose they are. */
function ofSomeBuffers(db: Database, scope: Scope, filter: AnalyticsFilter): PendingQuery<Row[]> {
  const all = scope.projectIds === null && filter.projectId === undefined && filter.bufferId === undefined
  if (all) return db``
  return db`AND buffer_uid IN (
    SELECT buffer_uid FROM buffer_owners WHERE ${reachable(db, scope)} ${wanted(db, filter)})`
}

function wanted(db: Database, { projectId, bufferId }: AnalyticsFilter): PendingQuery<Row[]> {
  return db`${projectId === undefined ? db`` : db`AND project_id = ${projectId}`}
    ${bufferId === undefined ? db`` : db`AND buffer_id = ${bufferId}`}`
}

/**
 * The rows of `closed_days` at the coarsest level that still tells apart what the scope and the filter do.
 * The level '' of a whole customer is never part of a project-scoped read: no project has that id.
 */
function reachableLevel(db: Database, scope: Scope, { projectId, bufferId }: AnalyticsFilter) {
  const bufferLevel = bufferId ?? ''
  const projects = projectId === undefined ? scope.projectIds : [projectId]
  const wholeCustomer = projects === null && bufferId === undefined
  return db`${reachable(db, scope)} AND buffer_id = ${bufferLevel}
    ${wholeCustomer ? db`AND project_id = ''` : projects === null ? db`` : db`AND project_id = ANY (${[...projects]})`}`
}

async function countResources(db: Database, scope: Scope): Promise<{ projects: number; buffers: number }> {
  const [row] = await db<{ projects: number; buffers: number }[]>`
    SELECT (SELECT count(*) FROM projects WHERE ${reachable(db, scope)}) AS projects,
      (SELECT count(*) FROM buffers WHERE deleted_at IS NULL AND ${reachable(db, scope)}) AS buffers`
  return row!
}

function dayCountsOf(row: DayRow): DayCounts {
  return {
    day: row.day,
    ingested: row.ingest_count,
    delivered: row.delivered,
    dead: row.dead,
    retries: row.retries,
    itemsDelivered: row.items_delivered,
    itemsDead: row.items_dead,
    timeToFlush: row.time_to_flush,
    deliveryDuration: row.delivery_duration,
  }
}
