import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { ReadingTime } from '../../internal/billing/ports.ts'
import type { InvoiceReading, PlanChange, Reading } from '../../internal/billing/readings.ts'
import { createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { createSubscriptionStore } from '../../internal/postgres/subscriptions.ts'
import { PERIOD, providerHarnessOfSuite, START } from './provider-harness.ts'

describe('billing: what is read at a payment provider', () => {
  const on = providerHarnessOfSuite()

  /** Nothing is written; `reported` is the one line. */
  async function changesNothing(reading: Reading, outcome: string, reported: RegExp): Promise<void> {
    const before = await on.everything()
    expect(await on.tell(reading)).to.equal(outcome)
    expect(on.reported).to.have.length(1)
    expect(on.reported[0]).to.match(reported)
    expect(on.credited).to.deep.equal([])
    expect(await on.everything()).to.equal(before)
    on.reported.length = 0
  }

  describe('a subscription', () => {
    it('is what was read, and its paid period brings the credits', async () => {
      expect(await on.tell(on.subscription())).to.equal('applied')
      const { subscriptionId, customerId } = on
      expect(await on.current()).to.deep.equal({
        subscriptionId,
        customerId,
        planId: 'basic',
        status: 'ACTIVE',
        autoRenew: true,
        currentPeriodStart: START,
        currentPeriodEnd: START + PERIOD,
      })
      expect(await on.account()).to.deep.equal({ credits: 10, creditLimit: 0, debt: 0 })
      await on.tell(on.invoice())
      expect(await on.account()).to.deep.equal({ credits: 110, creditLimit: 100, debt: 0 })
      expect((await on.movements())[0]).to.deep.equal(['grant', 100, 'Credits of plan Basic', 110])
      expect(on.credited).to.deep.equal([customerId])
    })

    for (const status of ['PENDING', 'PAST_DUE', 'CANCELLING', 'CANCELLED', 'ACTIVE'] as const) {
      it(`may be ${status}`, async () => {
        await on.tell(on.subscription({ status }))
        const autoRenew = status !== 'CANCELLING' && status !== 'CANCELLED'
        expect(await on.current()).to.include({ status, autoRenew })
      })
    }

    it('that was cancelled at the provider, and taken back there, follows', async () => {
      await on.tell(on.subscription(), on.subscription({ status: 'CANCELLING' }))
      expect(await on.current()).to.include({ status: 'CANCELLING', autoRenew: false })
      await on.tell(on.subscription())
      expect(await on.current()).to.include({ status: 'ACTIVE', autoRenew: true })
    })

    it('is over for good', async () => {
      await on.tell(on.subscription(), on.subscription({ status: 'CANCELLED' }))
      expect(await on.tell(on.subscription())).to.equal('applied')
      expect(await on.current()).to.include({ status: 'CANCELLED', autoRenew: false })
    })

    it('is what the reading says that began last, not the one that ended last', async () => {
      await on.tell(on.subscription())
      const [reference] = on.set(on.subscription({ status: 'PAST_DUE' }))
      on.provider.beforeAnswer = async () => {
        on.provider.beforeAnswer = async () => {}
        await on.tell(on.subscription({ status: 'CANCELLING' }))
      }
      expect(await on.events().receive(reference!)).to.equal('applied')
      expect((await on.current())?.status).to.equal('CANCELLING')
    })

    it('keeps the provider’s yes to its customer against a reading that began before', async () => {
      await on.tell(on.subscription())
      const [reference] = on.set(on.subscription())
      on.provider.beforeAnswer = async () => {
        const change = { from: ['ACTIVE'], to: 'CANCELLING', reason: null } as const
        await createSubscriptionStore(on.db).end(on.subscriptionId, change)
      }
      await on.events().receive(reference!)
      expect((await on.current())?.status).to.equal('CANCELLING')
    })

    it('is decided by Postgres’ clock in microseconds', async () => {
      const at = (fraction: string) => {
        const now = async () => `2026-05-05T00:00:00.${fraction}Z` as ReadingTime
        return on.events({ ...createReadingLog(on.db), now })
      }
      const [reference] = on.set(on.subscription({ status: 'PAST_DUE' }))
      await at('000002').receive(reference!)
      on.set(on.subscription({ status: 'CANCELLING' }))
      await at('000001').receive(reference!)
      expect((await on.current())?.status).to.equal('PAST_DUE')
      await at('000002').receive(reference!)
      expect((await on.current())?.status, 'of one time the later told').to.equal('CANCELLING')
    })
  })

  describe('a change of plan', () => {
    const large = { planId: 'large' }
    const next = { currentPeriodStart: START + PERIOD, currentPeriodEnd: START + 2 * PERIOD }

    it('is followed at once, and brings the difference for the rest of the period when that is paid, once', async () => {
      await on.tell(on.subscription(), on.invoice(), on.subscription(large))
      expect((await on.current())?.planId).to.equal('large')
      await on.tell(on.difference({ status: 'open', paidAt: null }))
      expect(await on.account()).to.deep.equal({ credits: 110, creditLimit: 100, debt: 0 })
      on.credited.length = 0
      await on.tell(on.difference(), on.difference())
      expect(await on.account()).to.deep.equal({ credits: 560, creditLimit: 1_000, debt: 0 })
      expect((await on.movements())[0]).to.deep.equal(['grant', 450, 'Change to plan Large', 560])
      expect(on.credited).to.deep.equal([on.customerId])
    })

    it('brings nothing when its difference is given up, and its credits when it is paid after all', async () => {
      await on.tell(on.subscription(large), on.invoice(), on.difference({ status: 'void', paidAt: null }))
      expect((await on.account()).credits).to.equal(110)
      await on.tell(on.difference())
      expect((await on.account()).credits).to.equal(560)
    })

    it('brings nothing by itself, however often it is told', async () => {
      await on.tell(on.subscription(), on.invoice(), on.subscription(large), on.subscription(large))
      expect(await on.account()).to.include({ credits: 110, creditLimit: 100 })
    })

    it('brings nothing more when it goes back and forth', async () => {
      await on.tell(on.subscription(), on.invoice(), on.difference())
      const back = { fromPlanId: 'large', planId: 'basic' }
      await on.tell(on.difference({ amount: 0 }, back, 'down'), on.difference({}, {}, 'again'))
      expect(await on.account()).to.include({ credits: 560, creditLimit: 1_000 })
    })

    it('brings the difference of each step for what was paid, in any order', async () => {
      const up = { fromPlanId: 'large', planId: 'huge' }
      await on.tell(on.subscription({ planId: 'huge' }), on.invoice(), on.difference({}, up, 'second'))
      expect((await on.account()).credits, 'not what the first step costs').to.equal(1_110)
      await on.tell(on.difference())
      expect((await on.account()).credits).to.equal(1_560)
    })

    it('counts also when it is paid before its period, and when its period is over', async () => {
      await on.tell(on.subscription(large), on.difference())
      expect((await on.account()).credits).to.equal(460)
      await on.tell(on.invoice())
      expect((await on.account()).credits).to.equal(560)
      await on.tell(on.subscription({ ...large, ...next }))
      await on.tell(on.difference({}, { fromPlanId: 'large', planId: 'huge' }, 'late'))
      expect(await on.account()).to.include({ credits: 1_560, creditLimit: 1_000 })
    })

    it('of a period that was never paid, and is over, takes the length of the one that runs', async () => {
      await on.tell(on.subscription({ ...large, ...next }), on.difference())
      expect((await on.account()).credits).to.equal(460)
    })

    it('from a plan that is not known brings the difference to what was paid', async () => {
      await on.tell(on.subscription(large), on.difference({}, { fromPlanId: null }))
      expect((await on.account()).credits, 'nothing was paid').to.equal(10)
      await on.tell(on.invoice(), on.difference({}, { fromPlanId: null }, 'again'))
      expect((await on.account()).credits).to.equal(560)
    })

    it('brings several changes of one invoice, each once', async () => {
      const [up] = on.difference().changes as [PlanChange]
      const at = (day: number, from: string, to: string) => ({
        ...up,
        fromPlanId: from,
        planId: to,
        changedAt: START + (day * PERIOD) / 30,
      })
      const changes = [at(15, 'basic', 'large'), at(18, 'large', 'basic'), at(21, 'basic', 'huge')]
      await on.tell(on.subscription({ planId: 'huge' }), on.invoice(), on.difference({ changes }))
      expect((await on.account()).credits).to.equal(110 + 450 + 600)
    })

    it('to a lesser plan takes nothing, and the next period brings that one', async () => {
      const cycle = { planId: 'large', periodStart: START, periodEnd: START + PERIOD, newMoney: null }
      await on.tell(on.subscription(large), on.invoice(0, { cycle }))
      await on.tell(on.subscription(), on.difference({ amount: 0 }, { fromPlanId: 'large', planId: 'basic' }))
      expect(await on.account()).to.include({ credits: 1_010, creditLimit: 1_000 })
      await on.tell(on.subscription(next), on.invoice(1))
      expect(await on.account()).to.include({ credits: 1_110, creditLimit: 100 })
    })

    it('gives back what its difference brought, in proportion, and may be paid anew', async () => {
      await on.tell(on.subscription(large), on.invoice(), on.difference())
      const back = (returnedInCents: number) => on.difference({ returnedInCents })
      await on.tell(back(500), back(500))
      expect((await on.account()).credits).to.equal(447)
      await on.tell(on.difference({}, {}, 'again'))
      expect((await on.account()).credits, 'a part of it is still paid').to.equal(447)
      await on.tell(back(2_000))
      expect((await on.account()).credits).to.equal(110)
      await on.tell(on.difference({}, {}, 'anew'))
      expect((await on.account()).credits).to.equal(560)
    })

    it('that begins a period is paid with what is left of the one before, first of all', async () => {
      await on.tell(on.subscription(), on.invoice())
      const cycle = (paidInCents: number, start: number) => ({
        planId: 'large',
        periodStart: START + start,
        periodEnd: START + PERIOD * 12,
        newMoney: { paidInCents, priceInCents: 5_000 },
      })
      await on.tell(on.difference({ amount: 0, changes: [], cycle: cycle(0, 1) }))
      expect(await on.account()).to.include({ credits: 110, creditLimit: 1_000 })
      await on.tell(on.difference({ amount: 4_000, changes: [], cycle: cycle(4_000, 2) }, {}, 'next'))
      expect((await on.account()).credits).to.equal(910)
    })
  })

  describe('an invoice', () => {
    const stored = async () => (await on.invoices())[0]

    it('is open, then paid', async () => {
      await on.tell(on.subscription(), on.invoice(0, { status: 'open', paidAt: null }))
      const { customerId, subscriptionId } = on
      const { invoiceId } = on.invoice()
      const fixed = { invoiceId, customerId, subscriptionId, amount: 1_000, createdAt: START }
      expect(await stored()).to.deep.equal({ ...fixed, status: 'open', paidAt: null })
      expect((await on.account()).credits).to.equal(10)
      await on.tell(on.invoice())
      expect(await stored()).to.deep.equal({ ...fixed, status: 'paid', paidAt: START + 5 })
    })

    it('may be given up', async () => {
      await on.tell(on.subscription(), on.invoice(0, { status: 'void', paidAt: null }))
      expect(await stored()).to.include({ status: 'void' })
      expect((await on.account()).credits).to.equal(10)
    })

    it('that is told first reads its subscription', async () => {
      on.set(on.subscription())
      expect(await on.tell(on.invoice())).to.equal('applied')
      expect((await on.current())?.status).to.equal('ACTIVE')
      expect((await on.account()).credits).to.equal(110)
    })

    it('whose subscription is not there yet is told again', async () => {
      expect(await on.tell(on.invoice())).to.equal('later')
      expect(await on.invoices()).to.deep.equal([])
    })

    it('of nothing brings the credits all the same', async () => {
      await on.tell(on.subscription(), on.invoice(0, { amount: 0 }))
      expect((await on.account()).credits).to.equal(110)
      expect(await stored()).to.include({ status: 'paid', amount: 0 })
    })

    it('brings its period once, whichever invoice and however many nodes tell it', async () => {
      await on.tell(on.subscription())
      const [first] = on.set(on.invoice())
      const [second] = on.set(on.invoice(0, { invoiceId: `again-${on.subscriptionId}` }))
      const nodes = [on.events(), on.events()]
      const told = Array.from({ length: 20 }, (_, n) => nodes[n % 2]!.receive(n % 3 ? first! : second!))
      expect(new Set(await Promise.all(told))).to.deep.equal(new Set(['applied']))
      expect((await on.account()).credits).to.equal(110)
      expect(on.credited).to.deep.equal([on.customerId])
    })

    it('of a period that is over brings its credits and leaves the limit', async () => {
      const next = { currentPeriodStart: START + PERIOD, currentPeriodEnd: START + 2 * PERIOD }
      await on.tell(on.subscription({ planId: 'large', ...next }), on.invoice(0))
      expect(await on.account()).to.include({ credits: 110, creditLimit: 0 })
    })
  })

  describe('money that goes back', () => {
    const back = (returnedInCents: number, more: Partial<InvoiceReading> = {}) =>
      on.invoice(0, { returnedInCents, ...more })

    it('takes its part of the credits, as often as it is told, and the rest later', async () => {
      await on.tell(on.subscription(), on.invoice(), back(250), back(250))
      expect((await on.account()).credits).to.equal(85)
      expect((await on.invoices())[0]).to.include({ status: 'paid' })
      const { invoiceId } = on.invoice()
      expect((await on.movements())[0]).to.deep.equal([
        'refund',
        -25,
        `Money back of invoice ${invoiceId}`,
        85,
      ])
      await on.tell(back(1_000))
      expect((await on.account()).credits).to.equal(10)
      expect((await on.invoices())[0]).to.include({ status: 'refunded', paidAt: START + 5 })
    })

    it('leaves a debt of what is spent, which the next credits pay', async () => {
      await on.tell(on.subscription(), on.invoice())
      await on.spend(80)
      await on.tell(back(1_000))
      expect(await on.account()).to.include({ credits: 0, debt: 70 })
      expect((await on.movements()).map(([type, amount]) => [type, amount]).slice(0, 2)).to.deep.include(
        ...[['refund', -30]],
      )
      await on.tell(on.invoice(1))
      expect(await on.account()).to.include({ credits: 30, debt: 0 })
      // Consumption stands above all that happened in its minute.
      const [paid, granted] = (await on.movements()).filter(([type]) => type !== 'consumption')
      expect(paid).to.deep.equal(['refund', -70, 'Credits owed for money that went back', 110])
      expect(granted?.slice(0, 2)).to.deep.equal(['grant', 100])
      for (const [, , , balance] of await on.movements()) expect(balance).to.be.at.least(0)
    })

    it('is paid in parts when the next credits are fewer', async () => {
      await on.tell(on.subscription(), on.invoice())
      await on.spend(110)
      await on.tell(back(1_000), on.pack())
      expect(await on.account()).to.include({ credits: 0, debt: 50 })
    })

    it('comes back when a dispute is won', async () => {
      await on.tell(on.subscription(), on.invoice(), back(1_000))
      expect((await on.invoices())[0]).to.include({ status: 'refunded' })
      on.credited.length = 0
      await on.tell(back(0))
      expect((await on.account()).credits).to.equal(110)
      expect((await on.invoices())[0]).to.include({ status: 'paid' })
      expect(on.credited).to.deep.equal([on.customerId])
    })

    it('is what the reading says that began last', async () => {
      await on.tell(on.subscription(), on.invoice())
      const [reference] = on.set(back(0))
      on.provider.beforeAnswer = async () => {
        on.provider.beforeAnswer = async () => {}
        await on.tell(back(1_000))
      }
      await on.events().receive(reference!)
      expect((await on.account()).credits).to.equal(10)
      expect((await on.invoices())[0]).to.include({ status: 'refunded' })
    })

    it('may have gone back before anything was told', async () => {
      await on.tell(on.subscription(), back(500))
      expect((await on.account()).credits).to.equal(60)
    })
  })

  describe('a pack', () => {
    it('brings its credits and an invoice of the subscription', async () => {
      await on.tell(on.subscription(), on.pack())
      expect((await on.movements())[0]).to.deep.equal(['purchase', 50, 'Credit pack fifty', 60])
      const { customerId, subscriptionId } = on
      const { invoiceId } = on.pack()
      expect(await on.invoices()).to.deep.equal([
        {
          invoiceId,
          customerId,
          subscriptionId,
          status: 'paid',
          amount: 500,
          paidAt: START,
          createdAt: START,
        },
      ])
      expect(on.credited).to.deep.equal([customerId])
    })

    for (const state of ['open', 'failed', 'expired'] as const) {
      it(`that is ${state} brings nothing`, async () => {
        expect(await on.tell(on.subscription(), on.pack({ state, paidAt: null }))).to.equal('applied')
        expect((await on.account()).credits).to.equal(10)
        expect(await on.invoices()).to.deep.equal([])
      })
    }

    for (const [paidInCents, credits] of [
      [250, 25],
      [499, 50],
      [10, 1],
      [1_000, 100],
      [0, 0],
    ] as const) {
      it(`brings ${credits} of 50 credits for ${paidInCents} of 500 cents`, async () => {
        await on.tell(on.pack({ paidInCents, amount: paidInCents + 90 }))
        expect((await on.account()).credits).to.equal(10 + credits)
      })
    }

    it('brings them once, however often it is told', async () => {
      const [reference] = on.set(on.pack())
      const nodes = [on.events(), on.events()]
      await Promise.all(Array.from({ length: 20 }, (_, n) => nodes[n % 2]!.receive(reference!)))
      expect((await on.account()).credits).to.equal(60)
    })

    it('brings what it brought when it was paid, whatever plans cost since', async () => {
      await on.tell(on.pack())
      await on.db`UPDATE plans SET prices = '{"BRL": 10}'::jsonb WHERE plan_id = 'basic'`
      try {
        await on.tell(on.pack({ returnedInCents: 250 }))
      } finally {
        await on.db`UPDATE plans SET prices = '{"BRL": 1000}'::jsonb WHERE plan_id = 'basic'`
      }
      expect((await on.account()).credits).to.equal(35)
    })

    it('gives them back with its money, and shows it', async () => {
      await on.tell(on.subscription(), on.pack(), on.pack({ returnedInCents: 500 }))
      expect((await on.account()).credits).to.equal(10)
      expect((await on.invoices())[0]).to.include({ status: 'refunded' })
    })

    it('is sold also when it is not on sale any more, or nobody has a subscription', async () => {
      await on.tell(on.pack({ packId: 'old' }))
      expect((await on.account()).credits).to.equal(60)
      expect(await on.invoices()).to.deep.equal([])
    })
  })

  describe('a second subscription', () => {
    it('is ended and paid back: the newer one, whichever is told first', async () => {
      const older = on.subscription()
      const newer = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      await on.tell(newer)
      expect(on.reported).to.deep.equal([])
      await on.tell(older)
      expect(on.reported).to.deep.equal([`second: ${newer.subscriptionId}`])
      expect(on.provider.asked).to.deep.equal([
        { call: 'cancelAndRefund', subscriptionId: newer.subscriptionId },
      ])
      expect((await on.current())?.subscriptionId).to.equal(older.subscriptionId)
      const [row] = await on.db`
        SELECT status FROM subscriptions WHERE subscription_id = ${newer.subscriptionId}`
      expect(row).to.deep.equal({ status: 'CANCELLED' })
    })

    it('is ended once the provider answers', async () => {
      const second = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      await on.tell(on.subscription())
      const [reference] = on.set(second)
      const { provider } = on
      const { cancelAndRefund } = provider
      provider.cancelAndRefund = () => Promise.reject(new Error('the provider says 500'))
      const failed = await on
        .events()
        .receive(reference!)
        .catch((error: Error) => error.message)
      expect(failed).to.equal('the provider says 500')
      provider.cancelAndRefund = cancelAndRefund
      expect(await on.events().receive(reference!)).to.equal('applied')
      expect(on.reported).to.deep.equal([`second: ${second.subscriptionId}`])
    })

    it('that the provider does not end makes no loop', async () => {
      on.provider.cancelAndRefund = async () => {}
      await on.tell(on.subscription())
      const second = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      expect(await on.tell(second)).to.equal('applied')
      expect(on.reported.length).to.be.within(1, 4)
    })

    it('is none when the first has ended at the provider, and our row does not know yet', async () => {
      await on.tell(on.subscription({ status: 'CANCELLING' }))
      on.set(on.subscription({ status: 'CANCELLED' }))
      const next = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      expect(await on.tell(next)).to.equal('applied')
      expect(on.reported).to.deep.equal([])
      expect(on.provider.asked).to.deep.equal([])
      expect(await on.current()).to.include({ subscriptionId: next.subscriptionId, status: 'ACTIVE' })
    })

    it('is none when the first is over or was never paid', async () => {
      await on.tell(on.subscription({ status: 'CANCELLED' }))
      await on.tell(on.subscription({ subscriptionId: `sub-${randomUUID()}`, status: 'PENDING' }))
      await on.tell(on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 }))
      expect(on.reported).to.deep.equal([])
    })
  })

  describe('what is not of the customer that it names', () => {
    it('changes nothing: no such object, customer or payer', async () => {
      const before = await on.everything()
      const nothing = { kind: 'invoice', id: 'none' } as const
      expect(await on.events().receive(nothing)).to.equal('ignored')
      expect(on.reported).to.deep.equal([])
      expect(await on.everything()).to.equal(before)
      const stranger = { customerId: 'nobody' }
      await changesNothing(on.subscription(stranger), 'ignored', /^stranger: nobody$/)
      await changesNothing(on.pack({ providerCustomerId: 'cus-none' }), 'ignored', /^stranger: /)
    })

    it('changes nothing when another customer pays for it', async () => {
      await on.tell(on.subscription(), on.invoice())
      on.credited.length = 0
      const other = await on.newCustomer(0)
      const payer = `cus-${other}`
      await changesNothing(on.pack({ providerCustomerId: payer }), 'ignored', /^stranger: /)
      const stolen = on.subscription({ customerId: other, providerCustomerId: payer })
      await changesNothing(stolen, 'ignored', /^stranger: /)
      const invoice = on.invoice(1, { customerId: other, providerCustomerId: payer })
      await changesNothing(invoice, 'ignored', /^stranger: /)
    })
  })

  describe('a customer of the provider who was replaced', () => {
    it('still pays for what he has, and so does the new one', async () => {
      const { customerId } = on
      await on.tell(on.subscription(), on.invoice())
      const change = { gone: `cus-${customerId}`, made: `new-${customerId}` }
      await createProviderCustomers(on.db).replace('recording', customerId, change)
      await on.tell(on.invoice(0, { returnedInCents: 500 }), on.subscription({ status: 'CANCELLED' }))
      expect(await on.account()).to.include({ credits: 60 })
      expect((await on.current())?.status).to.equal('CANCELLED')
      const next = { subscriptionId: `sub-${randomUUID()}`, providerCustomerId: change.made }
      expect(await on.tell(on.subscription({ ...next, createdAt: START + 1 }))).to.equal('applied')
      expect(await on.current()).to.include({ subscriptionId: next.subscriptionId, status: 'ACTIVE' })
      expect(on.reported).to.deep.equal([])
    })
  })

  describe('what cannot be used', () => {
    const newMoney = (paidInCents: number, priceInCents: number) => {
      const cycle = on.invoice().cycle!
      return on.invoice(0, { cycle: { ...cycle, newMoney: { paidInCents, priceInCents } } })
    }
    const bad: [what: string, reading: () => unknown, error: RegExp][] = [
      ['an unknown plan', () => on.subscription({ planId: 'none' }), /no plan none/],
      ['an unknown pack', () => on.pack({ packId: 'none' }), /no pack none/],
      ['a currency without prices', () => on.pack({ currency: 'USD' }), /price in USD/],
      ['another currency', () => ({ ...on.pack(), currency: 'EUR' }), /currency /],
      ['a customer that is no identifier', () => on.subscription({ customerId: 'a/b' }), /customerId /],
      ['no customer', () => ({ ...on.pack(), customerId: undefined }), /customerId /],
      ['a plan of another type', () => ({ ...on.subscription(), planId: 5 }), /planId /],
      ['a huge pack', () => on.pack({ packId: 'x'.repeat(1_000_000) }), /packId /],
      ['a payer with a space', () => on.pack({ providerCustomerId: 'a b' }), /providerCustomerId /],
      ['another state', () => ({ ...on.subscription(), status: 'GONE' }), /status /],
      ['no state of a pack', () => ({ ...on.pack(), state: null }), /status /],
      ['half a cent', () => on.pack({ paidInCents: 0.5 }), /paidInCents /],
      ['an amount below zero', () => on.invoice(0, { amount: -1 }), /amount /],
      ['more back than was paid', () => on.invoice(0, { returnedInCents: 1_001 }), /returnedInCents /],
      ['credits beyond all numbers', () => on.pack({ paidInCents: 9e15 }), /paidInCents /],
      ['a time in text', () => ({ ...on.subscription(), createdAt: '2026-01-01' }), /createdAt /],
      ['a time beyond all dates', () => on.subscription({ currentPeriodEnd: 8.65e15 }), /currentPeriodEnd /],
      ['a paid time of another type', () => ({ ...on.invoice(), paidAt: 'now' }), /paidAt /],
      [
        'a period that ends as it begins',
        () => on.subscription({ currentPeriodEnd: START }),
        /currentPeriodEnd /,
      ],
      [
        'a cycle that ends as it begins',
        () =>
          on.invoice(0, { cycle: { planId: 'basic', periodStart: START, periodEnd: START, newMoney: null } }),
        /periodEnd /,
      ],
      ['a change to no plan', () => on.difference({}, { planId: 'a/b' }), /planId /],
      ['a change from no plan', () => on.difference({}, { fromPlanId: '' }), /fromPlanId /],
      ['a change at no time', () => on.difference({}, { changedAt: Number.NaN }), /changedAt /],
      ['a change at the end', () => on.difference({}, { changedAt: START + PERIOD }), /periodEnd /],
      ['a change to an unknown plan', () => on.difference({}, { planId: 'none' }), /no plan none/],
      ['more money than the price', () => newMoney(101, 100), /paidInCents /],
      ['money for a price of nothing', () => newMoney(0, 0), /priceInCents /],
      ['half a cent of a price', () => newMoney(0, 0.5), /priceInCents /],
    ]
    for (const [what, reading, error] of bad) {
      it(`with ${what} changes nothing and is told again`, async () => {
        const told = reading() as Reading
        if (told.kind === 'invoice') await on.tell(on.subscription())
        await changesNothing(told, 'later', new RegExp(`^unusable: .*${error.source}`))
      })
    }

    it('of another object than was asked for changes nothing', async () => {
      on.provider.objects.set('wanted', on.subscription())
      expect(await on.events().receive({ kind: 'subscription', id: 'wanted' })).to.equal('later')
      expect(on.reported).to.deep.equal(['unusable: another object was read'])
      expect(await on.current()).to.equal(null)
    })
  })
})
