/** What the lists of billing touch: with a long history, and a large neighbour beside it. The bounds are rows, not times. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import postgres from 'postgres'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createCreditAccounts } from '../../internal/postgres/credits.ts'
import { createInvoiceStore } from '../../internal/postgres/invoices.ts'
import { insertPlan, insertSubscription } from '../support/billing-rows.ts'
import { insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const ROWS = 100_000

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

describe('postgres: plans of billing', function () {
  this.timeout(120_000)
  let db: Database
  let watched: Database
  let latest: { query: string; parameters: unknown[] }
  const customers: string[] = []

  before(async () => {
    const url = await freshDatabase()
    db = connect(url, { max: 1, statementTimeoutMs: 0 })
    watched = postgres(url, {
      max: 1,
      debug: (_connection, query, parameters) => {
        latest = { query, parameters }
      },
    }) as unknown as Database
    const { planId } = await insertPlan(db)
    for (const _ of ['one', 'neighbour']) {
      const customerId = await insertCustomer(db)
      customers.push(customerId)
      const { subscriptionId } = await insertSubscription(db, { customerId, planId })
      await fillTransactions(db, customerId)
      await fillInvoices(db, customerId, subscriptionId)
    }
    await db`VACUUM ANALYZE`
  })

  after(() => Promise.all([db.end(), watched.end()]))

  /** Rows read of the table by the latest statement, those that a filter threw away included. */
  async function rowsRead(table: string): Promise<number> {
    const [row] = await db.unsafe(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${latest.query}`,
      latest.parameters as never,
    )
    const nodes = nodesOf((row!['QUERY PLAN'] as [{ Plan: Plan }])[0].Plan)
    const scans = nodes.filter((node) => node['Relation Name'] === table)
    expect(scans.map((node) => node['Node Type'])).to.not.include('Seq Scan')
    return scans.reduce(
      (sum, node) =>
        sum + node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)),
      0,
    )
  }

  for (const limit of [1, 50, 500]) {
    it(`the newest ${limit} transactions are read, and one more for each minute of consumption`, async () => {
      const page = await createCreditAccounts(watched).transactions(customers[0]!, limit)
      expect(page).to.have.length(limit)
      expect(await rowsRead('credit_transactions')).to.be.within(limit, 2 * limit)
    })

    it(`the newest ${limit} invoices are read`, async () => {
      const page = await createInvoiceStore(watched).list(customers[0]!, limit)
      expect(page).to.have.length(limit)
      expect(await rowsRead('invoices')).to.equal(limit)
    })
  }
})

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

/** Of each minute five rows of consumption and one grant. */
async function fillTransactions(db: Database, customerId: string): Promise<void> {
  await db`INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after, created_at)
    SELECT ${customerId}, CASE n % 6 WHEN 0 THEN 5 ELSE -1 END,
      CASE n % 6 WHEN 0 THEN 'grant' ELSE 'consumption' END, 'filled', 0,
      '2026-01-01'::timestamptz + n * interval '10 seconds'
    FROM generate_series(1, ${ROWS}::int) AS n`
}

async function fillInvoices(db: Database, customerId: string, subscriptionId: string): Promise<void> {
  await db`INSERT INTO invoices (invoice_id, customer_id, subscription_id, status, amount, created_at)
    SELECT ${customerId} || n, ${customerId}, ${subscriptionId}, 'open', 5,
      '2026-01-01'::timestamptz + n * interval '10 seconds'
    FROM generate_series(1, ${ROWS}::int) AS n`
}
