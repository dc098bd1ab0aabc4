/**
 * What a read of analytics touches: with a long history, and a large neighbour beside it. The bounds are rows,
 * not times; none of them grows with the number of buffers but those of days that are still open.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import postgres from 'postgres'
import type { AnalyticsFilter } from '../../internal/analytics/ports.ts'
import { createAnalyticsStore } from '../../internal/postgres/analytics.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createOpenDays } from '../../internal/postgres/open-days.ts'
import { freshDatabase } from '../support/servers.ts'

const BUFFERS = 300
const PROJECTS = 20
const DAYS = 90
/** Today and yesterday are never closed, nor are the few days of a node that was away; here just these. */
const OPEN_DAYS = 2

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

describe('postgres: plans of analytics', function () {
  this.timeout(120_000)
  let db: Database
  let watched: Database
  let latest: { query: string; parameters: unknown[] }

  before(async () => {
    const url = await freshDatabase()
    db = connect(url, { max: 1, statementTimeoutMs: 0 })
    watched = postgres(url, {
      max: 1,
      debug: (_connection, query, parameters) => {
        latest = { query, parameters }
      },
    }) as unknown as Database
    for (const customerId of ['large', 'neighbour']) await fill(db, customerId, BUFFERS)
    await fill(db, 'small', 2)
    const open = createOpenDays(db)
    while ((await open.close(20_000)) > 0);
    await db`VACUUM ANALYZE`
  })

  after(() => Promise.all([db.end(), watched.end()]))

  /** Rows read of each table by the statement of `days`, those that a filter threw away included. */
  async function rowsRead(
    customerId: string,
    days: number,
    { projectIds = null, ...filter }: AnalyticsFilter & { projectIds?: string[] | null } = {},
  ): Promise<{ closed: number; open: number }> {
    const range = { from: daysAgo(days - 1), to: daysAgo(0) }
    const answer = await createAnalyticsStore(watched).days({ customerId, projectIds }, filter, range)
    expect(answer, 'every day has traffic').to.have.length(days)
    const [row] = await db.unsafe(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${latest.query}`,
      latest.parameters as never,
    )
    const scans = nodesOf((row!['QUERY PLAN'] as [{ Plan: Plan }])[0].Plan)
    const history = scans.filter((node) => node['Relation Name'] === 'closed_days')
    expect(history.map((node) => node['Node Type'])).to.not.include('Seq Scan')
    return { closed: rowsOf(history), open: rowsOf(scans.filter(isOpen)) }
  }

  it('a customer’s series reads one closed row a day, however many buffers it has', async () => {
    const { closed, open } = await rowsRead('large', DAYS)
    expect(closed).to.equal(DAYS - OPEN_DAYS)
    expect(open).to.be.at.most(2 * OPEN_DAYS * BUFFERS * 2)
  })

  it('that of one project or buffer too', async () => {
    for (const filter of [{ projectId: 'large-p3' }, { bufferId: 'large-7' }]) {
      expect((await rowsRead('large', DAYS, filter)).closed).to.equal(DAYS - OPEN_DAYS)
    }
  })

  it('a project-scoped one reads one closed row a project and day', async () => {
    const projectIds = ['large-p1', 'large-p2', 'neighbour-p1']
    expect((await rowsRead('large', DAYS, { projectIds })).closed).to.equal(2 * (DAYS - OPEN_DAYS))
  })

  it('a summary reads the rows of two days, and of the history none', async () => {
    const { closed, open } = await rowsRead('large', 2)
    expect(closed).to.equal(0)
    expect(open).to.be.at.most(2 * OPEN_DAYS * BUFFERS * 2)
  })

  it('a small customer does not read what its large neighbours have', async () => {
    expect(await rowsRead('small', 2)).to.deep.equal({ closed: 0, open: 2 * OPEN_DAYS * 2 })
    expect(await rowsRead('small', DAYS)).to.deep.equal({
      closed: DAYS - OPEN_DAYS,
      open: 2 * OPEN_DAYS * 2,
    })
  })
})

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

function isOpen(node: Plan): boolean {
  return node['Relation Name'] === 'ingest_days' || node['Relation Name'] === 'delivery_days'
}

function rowsOf(nodes: readonly Plan[]): number {
  return nodes.reduce(
    (sum, node) => sum + node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)),
    0,
  )
}

async function fill(db: Database, customerId: string, buffers: number): Promise<void> {
  await db`INSERT INTO customers (customer_id, name) VALUES (${customerId}, 'Test')`
  await db`INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config)
    SELECT gen_random_uuid(), ${customerId} || '-' || n, ${customerId}, ${customerId} || '-p' || n % ${PROJECTS}, '{}'
    FROM generate_series(1, ${buffers}::int) n`
  await db`INSERT INTO ingest_days (buffer_uid, day, customer_id, ingest_count)
    SELECT uid, ${daysAgo(0)}::date - ago, customer_id, 100
    FROM buffers, generate_series(0, ${DAYS - 1}::int) ago WHERE customer_id = ${customerId}`
  await db`INSERT INTO delivery_days (buffer_uid, customer_id, day, delivered, dead, retries, items_delivered,
      items_dead, time_to_flush, delivery_duration)
    SELECT uid, customer_id, ${daysAgo(0)}::date - ago, 10, 1, 2, 90, 10,
      '{1,1,1,1,1,1,1,1,1,1,1,0}', '{1,1,1,1,1,1,1,1,1,1,1}'
    FROM buffers, generate_series(0, ${DAYS - 1}::int) ago WHERE customer_id = ${customerId}`
}

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
}
