/**
 * The SQL side of the ledger (docs/architecture/protocol.md, "Credits"): one function call, one round trip, one
 * commit.
 */

import type { CreditAnswer, CreditStatement, CreditStatements } from '../billing/ports.ts'
import type { Database } from './connection.ts'

export interface CreditStatementsOptions {
  /**
   * Opens a client of the ledger's own, 8 to 16 connections: as many customers commit at once, and fewer make
   * larger statements. It is opened anew when an answer is overdue: a connection that hangs (a stopped
   * server, a cut line) would hold up every later statement.
   */
  open: () => Database
  /** An answer later than this is given up, ms. Default 2,000. */
  deadlineMs?: number
}

export class PostgresCreditStatements implements CreditStatements {
  readonly #options: CreditStatementsOptions
  #db: Database

  constructor(options: CreditStatementsOptions) {
    this.#options = options
    this.#db = options.open()
  }

  async open(boot: string): Promise<void> {
    await this.#within((db) => db`INSERT INTO ledger_nodes (boot) VALUES (${boot}) ON CONFLICT DO NOTHING`)
  }

  async apply(boot: string, statement: CreditStatement): Promise<CreditAnswer> {
    const { customerId, number, buffers, runs, refunds, spent, settled, giveBack, take } = statement
    const [row] = await this.#within(
      (db) => db<{ is_open: boolean; granted: number; balance: number; taken: number; elsewhere: number }[]>`
        SELECT is_open, granted, balance, taken, elsewhere FROM charge_credits(
          ${boot}, ${customerId}, ${number}, ${[...buffers]}::uuid[],
          ${runs.buffer}::int[], ${runs.credits}::int[], ${runs.count}::int[],
          ${refunds.credits}::bigint[], ${refunds.items}::int[],
          ${spent.credits}::bigint[], ${spent.items}::int[], ${settled}, ${giveBack}, ${take})`,
    )
    if (row === undefined) throw new Error('charge_credits answered no row')
    const { is_open: open, granted, balance, taken, elsewhere: heldByOthers } = row
    return open
      ? { open, granted, balance, taken, heldByOthers }
      : { open, granted: 0, balance: 0, taken: 0, heldByOthers: 0 }
  }

  async close(boot: string): Promise<void> {
    await this.#within((db) => db`SELECT FROM close_ledger_node(${boot})`)
  }

  /** Ends the client, after the ledger. */
  async end(): Promise<void> {
    await this.#db.end({ timeout: 2 })
  }

  #within<T>(run: (db: Database) => Promise<T>): Promise<T> {
    const used = this.#db
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const overdue = setTimeout(() => {
      if (this.#db === used) this.#db = this.#options.open()
      void used.end({ timeout: 0 })
      reject(new Error('Postgres did not answer in time'))
    }, this.#options.deadlineMs ?? 2_000)
    run(used)
      .then(resolve, reject)
      .finally(() => clearTimeout(overdue))
    return promise
  }
}
