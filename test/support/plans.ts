/**
 * What a statement touches, as the adapter itself sends it. The service prepares its statements, so the server
 * may run them by the plan for these values or by the one for any: both are looked at. Bounds are rows, not
 * times.
 */
import postgres from 'postgres'
import { connect, type Database } from '../../internal/postgres/connection.ts'

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: PlanNode[]
}

/** One run of the latest statement. */
export interface Reading {
  readonly mode: 'custom' | 'generic'
  /** Rows read of the table, those that a filter threw away included. */
  rows(table: string): number
  /** Tables that were read from end to end. */
  readonly whole: readonly string[]
}

export interface WatchedDatabase {
  /** For the adapter under test. */
  readonly db: Database
  /** Runs the latest statement of `db` again, in each mode. */
  readings(): Promise<Reading[]>
  end(): Promise<void>
}

/** Only for statements that change nothing. */
export function watchStatements(url: string): WatchedDatabase {
  let latest: { query: string; parameters: readonly unknown[] } | undefined
  const explaining = connect(url, { max: 1, statementTimeoutMs: 0 })
  const db = postgres(url, {
    max: 1,
    types: { bigint: { to: 20, from: [20], serialize: String, parse: Number } },
    debug: (_connection, query, parameters) => {
      latest = { query, parameters }
    },
  })
  return {
    db: db as unknown as Database,
    async readings() {
      if (latest === undefined) throw new Error('no statement was sent')
      const { query, parameters } = latest
      await explaining.unsafe(`PREPARE latest AS ${query}`)
      try {
        const values = parameters.length === 0 ? '' : `(${parameters.map(literal).join(', ')})`
        return [await read(explaining, 'custom', values), await read(explaining, 'generic', values)]
      } finally {
        await explaining.unsafe('DEALLOCATE latest')
      }
    },
    async end() {
      await Promise.all([db.end(), explaining.end()])
    },
  }
}

async function read(db: Database, mode: Reading['mode'], values: string): Promise<Reading> {
  await db.unsafe(`SET plan_cache_mode = force_${mode}_plan`)
  const [row] = await db.unsafe(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE latest ${values}`)
  const nodes = nodesOf((row!['QUERY PLAN'] as [{ Plan: PlanNode }])[0].Plan)
  return {
    mode,
    rows: (table) => nodes.filter((node) => node['Relation Name'] === table).reduce(addRows, 0),
    whole: nodes
      .filter((node) => node['Node Type'] === 'Seq Scan')
      .map((node) => node['Relation Name'] ?? ''),
  }
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

function addRows(sum: number, node: PlanNode): number {
  const thrownAway = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  return sum + node['Actual Loops'] * (node['Actual Rows'] + thrownAway)
}

function literal(value: unknown): string {
  if (value === null) return 'NULL'
  const text = Array.isArray(value)
    ? `{${value.map((each) => JSON.stringify(each)).join(',')}}`
    : String(value)
  return `'${text.replaceAll("'", "''")}'`
}
