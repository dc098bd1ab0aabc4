/** Readings of a provider that says what a test lets it say, applied to a real database. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach } from 'mocha'
import type { ReadingLog } from '../../internal/billing/ports.ts'
import {
  createProviderEvents,
  type Outcome,
  type ProviderEvents,
} from '../../internal/billing/provider-events.ts'
import type {
  InvoiceReading,
  ObjectReference,
  PackReading,
  PlanChange,
  Reading,
  SubscriptionReading,
} from '../../internal/billing/readings.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createCreditAccounts } from '../../internal/postgres/credits.ts'
import { createInvoiceStore } from '../../internal/postgres/invoices.ts'
import { createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { createSubscriptionStore } from '../../internal/postgres/subscriptions.ts'
import { DAY_MS, insertPack, insertPlan } from '../support/billing-rows.ts'
import { RecordingProvider } from '../support/recording-provider.ts'
import { insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

export const START = Date.UTC(2026, 0, 1)
export const PERIOD = 30 * DAY_MS

/** Plans `basic` (100 credits for 1000 cents), `large` (1000 credits) and `huge` (3000 credits), packs `fifty` and `old`; a new customer a test. */
export class ProviderHarness {
  databaseUrl!: string
  db!: Database
  provider!: RecordingProvider
  customerId!: string
  subscriptionId!: string
  readonly credited: string[] = []
  readonly reported: string[] = []

  async open(): Promise<void> {
    this.databaseUrl = await freshDatabase()
    this.db = connect(this.databaseUrl, { max: 8 })
    const { db } = this
    await insertPlan(db, { planId: 'basic', name: 'Basic', prices: { BRL: 1_000 }, creditsPerCycle: 100 })
    await insertPlan(db, { planId: 'large', name: 'Large', prices: { BRL: 5_000 }, creditsPerCycle: 1_000 })
    await insertPlan(db, { planId: 'huge', name: 'Huge', prices: { BRL: 9_000 }, creditsPerCycle: 3_000 })
    await insertPack(db, { packId: 'fifty', credits: 50 })
    await insertPack(db, { packId: 'old', credits: 50, isActive: false })
  }

  /** `credits`: of the new customer. */
  async begin(credits = 10): Promise<void> {
    this.provider = new RecordingProvider()
    this.credited.length = 0
    this.reported.length = 0
    this.customerId = await this.newCustomer(credits)
    this.subscriptionId = `sub-${randomUUID()}`
  }

  async newCustomer(credits: number): Promise<string> {
    const customerId = await insertCustomer(this.db, credits)
    await createProviderCustomers(this.db).keep('recording', customerId, `cus-${customerId}`)
    return customerId
  }

  /** Of a node; `log` is that of another one. */
  events(log: ReadingLog = createReadingLog(this.db)): ProviderEvents {
    const { provider, credited, reported } = this
    return createProviderEvents({
      provider,
      log,
      credited: (id) => credited.push(id),
      reports: {
        unusable: ({ reason }) => reported.push(`unusable: ${reason}`),
        stranger: ({ customerId }) => reported.push(`stranger: ${customerId}`),
        secondSubscription: ({ subscriptionId, refused }) =>
          reported.push([`second: ${subscriptionId}`, ...refused].join(', refused: ')),
      },
    })
  }

  subscription(fields: Partial<SubscriptionReading> = {}): SubscriptionReading {
    return {
      kind: 'subscription',
      subscriptionId: this.subscriptionId,
      customerId: this.customerId,
      providerCustomerId: `cus-${this.customerId}`,
      planId: 'basic',
      status: 'ACTIVE',
      currentPeriodStart: START,
      currentPeriodEnd: START + PERIOD,
      createdAt: START,
      ...fields,
    }
  }

  /** Of the period `period`, from 0. */
  invoice(period = 0, fields: Partial<InvoiceReading> = {}): InvoiceReading {
    const periodStart = START + period * PERIOD
    return {
      kind: 'invoice',
      invoiceId: `in-${period}-${this.subscriptionId}`,
      subscriptionId: this.subscriptionId,
      customerId: this.customerId,
      providerCustomerId: `cus-${this.customerId}`,
      status: 'paid',
      amount: 1_000,
      paidAt: periodStart + 5,
      createdAt: periodStart,
      cycle: { planId: 'basic', periodStart, periodEnd: periodStart + PERIOD, newMoney: null },
      changes: [],
      returnedInCents: 0,
      ...fields,
    }
  }

  /** Of the difference of another plan in the first period: a half of that is left, by default. */
  difference(
    fields: Partial<InvoiceReading> = {},
    change: Partial<PlanChange> = {},
    name = 'up',
  ): InvoiceReading {
    const made = {
      fromPlanId: 'basic',
      planId: 'large',
      changedAt: START + PERIOD / 2,
      periodEnd: START + PERIOD,
    }
    return this.invoice(0, {
      invoiceId: `${name}-${this.subscriptionId}`,
      cycle: null,
      changes: [{ ...made, ...change }],
      amount: 2_000,
      createdAt: START + PERIOD / 2,
      ...fields,
    })
  }

  pack(fields: Partial<PackReading> = {}): PackReading {
    return {
      kind: 'pack',
      checkoutId: `co-${this.subscriptionId}`,
      customerId: this.customerId,
      providerCustomerId: `cus-${this.customerId}`,
      packId: 'fifty',
      state: 'paid',
      paidInCents: 500,
      currency: 'BRL',
      amount: 500,
      returnedInCents: 0,
      createdAt: START,
      paidAt: START,
      invoiceId: `pi-${this.subscriptionId}`,
      ...fields,
    }
  }

  /** The provider has it from now on. */
  set(...readings: Reading[]): ObjectReference[] {
    return readings.map((reading) => {
      const id = idOf(reading)
      this.provider.objects.set(id, reading)
      return { kind: reading.kind, id }
    })
  }

  /** The provider has it, and tells it, before it has the next one. */
  async tell(...readings: Reading[]): Promise<Outcome> {
    let last: Outcome = 'ignored'
    for (const reading of readings) last = await this.events().receive(this.set(reading)[0]!)
    return last
  }

  async current() {
    return (await createSubscriptionStore(this.db).current(this.customerId))?.subscription ?? null
  }

  async account(): Promise<{ credits: number; creditLimit: number; debt: number }> {
    const [row] = await this.db<{ credits: number; credit_limit: number; credit_debt: number }[]>`
      SELECT credits, credit_limit, credit_debt FROM customers WHERE customer_id = ${this.customerId}`
    return { credits: row!.credits, creditLimit: row!.credit_limit, debt: row!.credit_debt }
  }

  /** Newest first: type, amount, description, balance. */
  async movements() {
    const rows = await createCreditAccounts(this.db).transactions(this.customerId, 500)
    return rows.map(({ type, amount, description, balanceAfter }) => [
      type,
      amount,
      description,
      balanceAfter,
    ])
  }

  invoices() {
    return createInvoiceStore(this.db).list(this.customerId, 500)
  }

  /** The customer uses them up. */
  async spend(credits: number): Promise<void> {
    await this.db`UPDATE customers SET credits = credits - ${credits} WHERE customer_id = ${this.customerId}`
    await this.db`
      INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after)
      VALUES (${this.customerId}, ${-credits}, 'consumption', 'Ingest', 0)`
  }

  /** Telling it writes nothing; `reported` is the one line. */
  async changesNothing(reading: Reading, outcome: Outcome, reported: RegExp): Promise<void> {
    const before = await this.everything()
    expect(await this.tell(reading)).to.equal(outcome)
    expect(this.reported).to.have.length(1)
    expect(this.reported[0]).to.match(reported)
    expect(this.credited).to.deep.equal([])
    expect(await this.everything()).to.equal(before)
    this.reported.length = 0
  }

  async everything() {
    const { customerId } = this
    const [counts] = await this.db`SELECT (SELECT count(*) FROM subscriptions)::int AS subscriptions,
      (SELECT count(*) FROM invoices)::int AS invoices, (SELECT count(*) FROM credit_sales)::int AS sales,
      (SELECT sum(credits) FROM customers)::text AS credits`
    const mine = [await this.current(), await this.account(), await this.movements(), await this.invoices()]
    return JSON.stringify([customerId, counts, mine])
  }
}

export function idOf(reading: Reading): string {
  if (reading.kind === 'subscription') return reading.subscriptionId
  return reading.kind === 'invoice' ? reading.invoiceId : reading.checkoutId
}

export function providerHarnessOfSuite(): ProviderHarness {
  const harness = new ProviderHarness()
  before(() => harness.open())
  beforeEach(() => harness.begin())
  after(() => harness.db.end())
  return harness
}
