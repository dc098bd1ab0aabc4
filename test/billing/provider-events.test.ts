import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import {
  createProviderEvents,
  type ProviderEvent,
  UnusableEventError,
} from '../../internal/billing/provider-events.ts'
import type { Plan } from '../../internal/domain/model.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createCreditAccounts } from '../../internal/postgres/credits.ts'
import { createInvoiceStore } from '../../internal/postgres/invoices.ts'
import { createProviderEventLog } from '../../internal/postgres/provider-events.ts'
import { createSubscriptionStore } from '../../internal/postgres/subscriptions.ts'
import { DAY_MS, insertPack, insertPlan } from '../support/billing-rows.ts'
import { insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const START = Date.UTC(2026, 0, 1)
const PERIOD = 30 * DAY_MS

/** A union member without its event id, which the test gives. */
type Told<E extends ProviderEvent = ProviderEvent> = E extends ProviderEvent
  ? Omit<E, 'eventId' | 'at'> & { eventId?: string; at?: number }
  : never

describe('billing: what a payment provider tells', () => {
  let db: Database
  let plan: Plan
  let customerId: string
  let subscriptionId: string
  const credited: string[] = []

  before(async () => {
    db = connect(await freshDatabase(), { max: 4 })
    plan = await insertPlan(db, {
      planId: 'basic',
      name: 'Basic',
      prices: { BRL: 1_000 },
      creditsPerCycle: 100,
    })
    await insertPlan(db, { planId: 'large', prices: { BRL: 5_000 }, creditsPerCycle: 1_000 })
    await insertPack(db, { packId: 'fifty', credits: 50 })
    await insertPack(db, { packId: 'old', credits: 50, isActive: false })
  })
  after(() => db.end())

  beforeEach(async () => {
    credited.length = 0
    customerId = await insertCustomer(db, 10)
    subscriptionId = `sub-${randomUUID()}`
  })

  function tell(told: Told): Promise<'applied' | 'repeated'> {
    const log = createProviderEventLog(db)
    const events = createProviderEvents({ log, credited: (id) => credited.push(id) })
    return events.receive({ eventId: randomUUID(), at: START, ...told } as ProviderEvent)
  }

  const activated = (more: object = {}): Told => ({
    kind: 'subscription_activated',
    subscriptionId,
    customerId,
    planId: 'basic',
    autoRenew: true,
    periodStart: START,
    periodEnd: START + PERIOD,
    ...more,
  })
  const renewed = (period: number, more: object = {}): Told => ({
    kind: 'subscription_renewed',
    subscriptionId,
    at: START + period * PERIOD,
    periodStart: START + period * PERIOD,
    periodEnd: START + (period + 1) * PERIOD,
    ...more,
  })
  const status = (kind: 'subscription_past_due' | 'subscription_cancelled', at = START + 1): Told => ({
    kind,
    subscriptionId,
    at,
  })
  const packPaid = (more: object = {}): Told => ({
    kind: 'pack_paid',
    customerId,
    packId: 'fifty',
    paidInCents: 500,
    currency: 'BRL',
    ...more,
  })
  const invoice = (invoiceId: string, more: object = {}): Told => ({
    kind: 'invoice_changed',
    invoiceId,
    subscriptionId,
    status: 'open',
    amount: 1_000,
    createdAt: START,
    ...more,
  })

  const subscription = async () =>
    (await createSubscriptionStore(db).current(customerId))?.subscription ?? null
  const account = async () => {
    const { credits, creditLimit } = (await createCreditAccounts(db).read(customerId))!
    return { credits, creditLimit }
  }
  const movements = async () => {
    const rows = await createCreditAccounts(db).transactions(customerId, 500)
    return rows.map(({ type, amount, description, balanceAfter }) => [
      type,
      amount,
      description,
      balanceAfter,
    ])
  }
  const everything = async () => ({
    subscription: await subscription(),
    account: await account(),
    movements: await movements(),
    invoices: await createInvoiceStore(db).list(customerId, 500),
    events: (await db`SELECT count(*)::int AS count FROM provider_events`)[0]?.count,
  })

  async function refuses(told: Told, error: RegExp): Promise<void> {
    const before = await everything()
    const refused = await tell(told).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(refused).to.be.instanceOf(UnusableEventError)
    expect((refused as Error).message).to.match(error)
    expect(await everything()).to.deep.equal(before)
    expect(credited).to.deep.equal([])
  }

  describe('a subscription', () => {
    it('begins with its first cycle of credits, which is the limit too', async () => {
      expect(await tell(activated())).to.equal('applied')
      expect(await subscription()).to.deep.equal({
        subscriptionId,
        customerId,
        planId: 'basic',
        status: 'ACTIVE',
        autoRenew: true,
        currentPeriodStart: START,
        currentPeriodEnd: START + PERIOD,
      })
      expect(await account()).to.deep.equal({ credits: 110, creditLimit: plan.creditsPerCycle })
      expect((await movements())[0]).to.deep.equal(['grant', 100, 'Credits of plan Basic', 110])
      expect(credited).to.deep.equal([customerId])
    })

    it('waits for its first payment without credits', async () => {
      await tell({ ...activated(), kind: 'subscription_pending' } as Told)
      expect((await subscription())?.status).to.equal('PENDING')
      expect(await account()).to.deep.equal({ credits: 10, creditLimit: 0 })
      expect(credited).to.deep.equal([])
      await tell(activated({ at: START + 1 }))
      expect((await subscription())?.status).to.equal('ACTIVE')
      expect(await account()).to.deep.equal({ credits: 110, creditLimit: 100 })
    })

    it('gets a cycle with each period, on top of what is left', async () => {
      await tell(activated())
      await tell(renewed(1))
      await tell(renewed(2))
      expect(await account()).to.deep.equal({ credits: 310, creditLimit: 100 })
      expect(await subscription()).to.include({
        currentPeriodStart: START + 2 * PERIOD,
        currentPeriodEnd: START + 3 * PERIOD,
      })
    })

    it('gets one cycle a period, however many events tell it', async () => {
      await tell(activated())
      await tell(activated({ at: START + 5 }))
      await tell(renewed(0, { at: START + 6 }))
      await tell(renewed(1))
      await tell(renewed(1))
      expect((await account()).credits).to.equal(210)
    })

    it('gets the cycle of a period that is told after a later one', async () => {
      await tell(activated())
      await tell(renewed(2))
      await tell(renewed(1))
      await tell(renewed(2))
      expect((await account()).credits).to.equal(310)
      expect(await subscription()).to.include({ currentPeriodStart: START + 2 * PERIOD })
    })

    it('changes to another plan with its next period', async () => {
      await tell(activated())
      const periodStart = START + PERIOD
      await tell(
        activated({ planId: 'large', at: periodStart, periodStart, periodEnd: periodStart + PERIOD }),
      )
      expect(await account()).to.deep.equal({ credits: 1_110, creditLimit: 1_000 })
      expect((await subscription())?.planId).to.equal('large')
      // A payment for the first plan that is told late brings its credits, and leaves the limit.
      await tell(activated({ periodStart: START - PERIOD, periodEnd: START }))
      expect(await account()).to.deep.equal({ credits: 1_210, creditLimit: 1_000 })
      expect((await subscription())?.planId).to.equal('large')
    })

    it('is past due and paid again', async () => {
      await tell(activated())
      await tell(status('subscription_past_due'))
      expect((await subscription())?.status).to.equal('PAST_DUE')
      await tell(renewed(1))
      expect((await subscription())?.status).to.equal('ACTIVE')
      // It was late: the payment that it speaks of has arrived since.
      await tell(status('subscription_past_due', START + 2))
      expect((await subscription())?.status).to.equal('ACTIVE')
    })

    it('is over for good', async () => {
      await tell(activated())
      await tell(status('subscription_cancelled'))
      expect(await subscription()).to.include({ status: 'CANCELLED', autoRenew: false })
      await tell(renewed(1))
      await tell(activated({ at: START + PERIOD }))
      expect(await subscription()).to.include({ status: 'CANCELLED', currentPeriodStart: START })
      expect((await account()).credits).to.equal(110)
    })

    it('stays cancelled for the end of its period when a renewal was on its way', async () => {
      await tell(activated())
      const change = { from: ['ACTIVE'], to: 'CANCELLING', reason: null } as const
      await createSubscriptionStore(db).end(subscriptionId, change)
      await tell(renewed(1))
      expect(await subscription()).to.include({
        status: 'CANCELLING',
        autoRenew: false,
        currentPeriodEnd: START + 2 * PERIOD,
      })
      await tell(status('subscription_cancelled', START + 2 * PERIOD))
      expect((await subscription())?.status).to.equal('CANCELLED')
    })

    it('must be of a customer and a plan that are known, and keeps its customer', async () => {
      await refuses(activated({ customerId: 'nobody' }), /customer nobody/)
      await refuses(activated({ planId: 'none' }), /plan none/)
      await refuses(renewed(1), /no subscription/)
      await refuses(status('subscription_past_due'), /no subscription/)
      await refuses(status('subscription_cancelled'), /no subscription/)
      await tell(activated())
      credited.length = 0
      await refuses(activated({ customerId: await insertCustomer(db), at: START + 1 }), /^customerId /)
    })
  })

  describe('an invoice', () => {
    let invoiceId: string
    beforeEach(async () => {
      invoiceId = `in-${randomUUID()}`
      await tell(activated())
      credited.length = 0
    })
    const stored = () => createInvoiceStore(db).find(invoiceId)

    it('is issued, paid and refunded', async () => {
      await tell(invoice(invoiceId))
      const open = { invoiceId, customerId, subscriptionId, amount: 1_000, createdAt: START }
      expect(await stored()).to.deep.equal({ ...open, status: 'open', paidAt: null })
      await tell(invoice(invoiceId, { status: 'paid', at: START + 5 }))
      expect(await stored()).to.deep.equal({ ...open, status: 'paid', paidAt: START + 5 })
      await tell(invoice(invoiceId, { status: 'refunded', at: START + 9 }))
      expect(await stored()).to.deep.equal({ ...open, status: 'refunded', paidAt: START + 5 })
      expect(credited).to.deep.equal([])
    })

    it('may be first heard of when it is paid, and does not go back', async () => {
      await tell(invoice(invoiceId, { status: 'paid', at: START + 5 }))
      expect(await tell(invoice(invoiceId, { at: START + 4 }))).to.equal('applied')
      expect(await stored()).to.include({ status: 'paid', paidAt: START + 5 })
    })

    it('takes the later told of two events of one time', async () => {
      await tell(invoice(invoiceId))
      await tell(invoice(invoiceId, { status: 'paid' }))
      expect(await stored()).to.include({ status: 'paid', paidAt: START })
    })

    it('must be of one known subscription', async () => {
      await refuses(invoice(invoiceId, { subscriptionId: 'none' }), /no subscription none/)
      await tell(invoice(invoiceId))
      const other = `sub-${randomUUID()}`
      await tell(activated({ subscriptionId: other }))
      credited.length = 0
      await refuses(invoice(invoiceId, { subscriptionId: other }), /^subscriptionId /)
    })
  })

  describe('a pack that was paid', () => {
    it('brings its credits', async () => {
      await tell(packPaid())
      expect((await movements())[0]).to.deep.equal(['purchase', 50, 'Credit pack fifty', 60])
      expect(await account()).to.deep.equal({ credits: 60, creditLimit: 0 })
      expect(credited).to.deep.equal([customerId])
    })

    for (const [paidInCents, credits] of [
      [250, 25],
      [499, 50],
      [10, 1],
      [1_000, 100],
    ] as const) {
      it(`brings ${credits} of 50 credits for ${paidInCents} of 500 cents`, async () => {
        await tell(packPaid({ paidInCents }))
        expect((await account()).credits).to.equal(10 + credits)
      })
    }

    it('brings nothing when nothing was paid', async () => {
      expect(await tell(packPaid({ paidInCents: 0 }))).to.equal('applied')
      expect(await movements()).to.have.length(1)
      expect(credited).to.deep.equal([])
    })

    it('brings its credits also when it is not sold any more', async () => {
      await tell(packPaid({ packId: 'old' }))
      expect((await account()).credits).to.equal(60)
    })

    it('must be known, of a known customer, with a price in the currency', async () => {
      await refuses(packPaid({ packId: 'none' }), /pack none/)
      await refuses(packPaid({ customerId: 'nobody' }), /customer nobody/)
      await refuses(packPaid({ currency: 'USD' }), /price in USD/)
    })
  })

  describe('an event', () => {
    it('is applied once, however often and at once it is told', async () => {
      for (const told of [activated(), packPaid()]) {
        const eventId = randomUUID()
        const answers = await Promise.all(Array.from({ length: 8 }, () => tell({ ...told, eventId } as Told)))
        expect(answers.toSorted()).to.deep.equal(['applied', ...Array(7).fill('repeated')])
        expect(await tell({ ...told, eventId } as Told)).to.equal('repeated')
      }
      expect((await account()).credits).to.equal(160)
      expect(credited).to.deep.equal([customerId, customerId])
    })

    it('that could not be applied can be told again', async () => {
      const eventId = randomUUID()
      await refuses({ ...renewed(1), eventId } as Told, /no subscription/)
      await tell(activated())
      expect(await tell({ ...renewed(1), eventId } as Told)).to.equal('applied')
      expect((await account()).credits).to.equal(210)
    })

    it('of one customer does not get in the way of another’s of the same', async () => {
      await tell(activated())
      const many = [1, 2, 3, 4].map((period) => tell(renewed(period)))
      const paid = Array.from({ length: 6 }, () => tell(packPaid({ paidInCents: 100 })))
      const invoices = Array.from({ length: 6 }, () => tell(invoice(`in-${randomUUID()}`)))
      await Promise.all([...many, ...paid, ...invoices])
      expect((await account()).credits).to.equal(110 + 4 * 100 + 6 * 10)
      expect(await subscription()).to.include({ currentPeriodStart: START + 4 * PERIOD })
    })

    const bad: [string, () => Told, RegExp][] = [
      ['an event id with a space', () => ({ ...activated(), eventId: 'a b' }) as Told, /^eventId /],
      ['an empty event id', () => ({ ...activated(), eventId: '' }) as Told, /^eventId /],
      ['a customer that is no identifier', () => activated({ customerId: 'a/b' }), /^customerId /],
      ['a subscription that is no identifier', () => activated({ subscriptionId: '' }), /^subscriptionId /],
      ['an invoice that is no identifier', () => invoice('a b'), /^invoiceId /],
      ['a pack that is no identifier', () => packPaid({ packId: null }), /^packId /],
      ['a time in the text form', () => activated({ at: '2026-01-01' }), /^at /],
      ['a time without end', () => activated({ periodEnd: Number.POSITIVE_INFINITY }), /^periodEnd /],
      ['a time beyond all dates', () => invoice('in', { createdAt: 8.65e15 }), /^createdAt /],
      ['a period that ends as it begins', () => activated({ periodEnd: START }), /^periodEnd /],
      ['half a cent', () => packPaid({ paidInCents: 0.5 }), /^paidInCents /],
      ['a payment below zero', () => packPaid({ paidInCents: -1 }), /^paidInCents /],
      ['an amount below zero', () => invoice('in', { amount: -1 }), /^amount /],
      ['another currency', () => packPaid({ currency: 'EUR' }), /^currency /],
    ]
    for (const [what, told, error] of bad) {
      it(`with ${what} is refused`, () => refuses(told(), error))
    }
  })
})
