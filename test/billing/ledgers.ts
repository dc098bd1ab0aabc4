/** Ledgers of as many nodes as a test wants, on one real Postgres. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, afterEach, before } from 'mocha'
import { CreditLedger, type LedgerOptions } from '../../internal/billing/ledger.ts'
import type { CreditStatements } from '../../internal/billing/ports.ts'
import { LedgerUnavailableError } from '../../internal/ingest/ports.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { PostgresCreditStatements } from '../../internal/postgres/ledger.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

/** Of a charge, ms: no machine is so busy for so long. A test that wants it to end has a clock of its own. */
export const PATIENCE_MS = 15_000

export class Ledgers {
  url!: string
  db!: Database
  #statements!: PostgresCreditStatements
  readonly #made: CreditLedger[] = []
  readonly #clients: PostgresCreditStatements[] = []

  async open(): Promise<void> {
    this.url = await freshDatabase()
    this.db = connect(this.url)
    this.#statements = this.client(this.url)
  }

  async closeLedgers(): Promise<void> {
    await Promise.all(this.#made.splice(0).map((ledger) => ledger.close()))
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((one) => one.end()))
    await this.db.end()
  }

  client(databaseUrl: string, deadlineMs = 10_000, max = 4): PostgresCreditStatements {
    const open = () => connect(databaseUrl, { max, name: 'ledger' })
    const made = new PostgresCreditStatements({ open, deadlineMs })
    this.#clients.push(made)
    return made
  }

  ledger(options: Partial<LedgerOptions> = {}): CreditLedger {
    const made = new CreditLedger({
      boot: randomUUID(),
      statements: this.#statements,
      clock: systemClock(),
      unavailable: (message, cause) => new LedgerUnavailableError(message, { cause }),
      onClosed: () => {
        throw new Error('closed by nobody')
      },
      onProblem: () => {},
      patienceMs: PATIENCE_MS,
      ...options,
    })
    this.#made.push(made)
    return made
  }

  /** Statements that are applied by another way. */
  applying(apply: CreditStatements['apply']): CreditStatements {
    const statements = this.#statements
    return { open: (boot) => statements.open(boot), close: (boot) => statements.close(boot), apply }
  }

  readonly apply: CreditStatements['apply'] = (boot, statement) => this.#statements.apply(boot, statement)

  async account(credits: number): Promise<{ customerId: string; buffer: TestBuffer }> {
    const customerId = await insertCustomer(this.db, credits)
    return { customerId, buffer: await insertBuffer(this.db, customerId) }
  }

  /** Credits that nodes hold in advance. */
  async advancedOf(customerId: string): Promise<number> {
    const [row] = await this.db`SELECT advanced, (SELECT sum(advance)::bigint FROM settlements s
      WHERE s.customer_id = c.customer_id) AS held FROM customers c WHERE customer_id = ${customerId}`
    expect(row?.held ?? 0).to.equal(row?.advanced)
    return row?.advanced
  }
}

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))

// biome-ignore lint/suspicious/noExplicitAny: whatever it fails with.
export const failureOf = (answer: unknown): Promise<any> =>
  Promise.resolve(answer).then(
    () => undefined,
    (error) => error,
  )

export const paidOf = (answers: { paid: boolean }[]) => answers.filter((answer) => answer.paid).length

/** Real timers, and a time that goes as the test says: a pause of the machine lets nothing expire. */
export const clockOf = (monotonic: () => number): Clock => ({ ...systemClock(), monotonic })

/** To be called within `describe`: one database for all of its tests, ledgers for each. */
export function ledgersOfEachTest(): Ledgers {
  const ledgers = new Ledgers()
  before(() => ledgers.open())
  afterEach(() => ledgers.closeLedgers())
  after(() => ledgers.close())
  return ledgers
}
