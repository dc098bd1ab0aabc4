/**
 * What every adapter of a payment provider must make of our rows: one suite over the management API, a real Postgres and the
 * provider's own notifications.
 */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { PaymentProvider } from '../../internal/billing/ports.ts'
import { createProviderEvents, type ProviderEvents } from '../../internal/billing/provider-events.ts'
import { createProviderSweep, type ProviderSweep } from '../../internal/billing/provider-sweep.ts'
import type { Invoice, Subscription } from '../../internal/domain/model.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { createProviderSweeps } from '../../internal/postgres/provider-sweeps.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { type Admin, adminOf } from '../http/caller.ts'
import type { TestService } from '../http/service.ts'
import { eventually } from '../support/eventually.ts'

export type Outcome = 'pays' | 'pays-late' | 'fails' | 'abandons'
/** What becomes of the difference that another plan costs. */
export type ChangeOutcome = 'pays' | 'pays-late' | 'fails'
export type Action = 'cancel' | 'cancel-now' | 'resume' | 'fail-payment' | 'change-plan'

/**
 * A provider with the service in front of it. On sale: the plans `basic` (1000 cents, 100 credits) and `large` (5000 cents,
 * 1000 credits), the pack `fifty` (50 credits for 500 cents).
 */
export interface World {
  readonly provider: PaymentProvider
  readonly service: TestService
  readonly db: Database
  /** Lines that the service wrote of what the provider told. */
  readonly reported: string[]
  /** What a customer does on the page of a checkout. */
  pay(url: string, outcome: Outcome, choice?: { amountInCents?: number; taxInCents?: number }): Promise<void>
  /** The provider's clock. */
  advance(days: number): Promise<void>
  /** At the provider's own site. */
  act(subscriptionId: string, action: Action, planId?: string, outcome?: ChangeOutcome): Promise<void>
  /** Of an invoice; of a pack also its checkout is needed. Default: all that is left. */
  refund(invoiceId: string, checkoutUrl: string | undefined, amountInCents?: number): Promise<void>
  dispute(invoiceId: string, outcome: 'lost' | 'won'): Promise<void>
  /** Tells all events again. */
  repeatAll(): Promise<void>
  /** From now on events get lost. */
  losing(isLosing: boolean): void
  close(): Promise<void>
}

const PLAN = (planId: string) => `/v1/admin/subscription/checkout-url?planId=${planId}`
const PACK = '/v1/admin/credit-packs/fifty/checkout-url'
const SUBSCRIPTION = '/v1/admin/subscription'

/** `hasTax`: whether the provider adds tax to what it sells. */
export function contractOf(name: string, { hasTax }: { hasTax: boolean }, open: () => Promise<World>): void {
  describe(`the contract of payment providers: ${name}`, function () {
    this.timeout(60_000)
    let world: World
    let api: Admin
    let customerId: string

    before(async () => {
      world = await open()
    })
    beforeEach(async () => {
      world.losing(false)
      world.reported.length = 0
      customerId = `customer-${randomUUID()}`
      api = adminOf(world.service.url, await world.service.ownerKey(customerId))
    })
    after(() => world?.close())

    async function page(path: string): Promise<string> {
      const { status, json, text } = await api.get(path)
      expect(status, text).to.equal(200)
      return (json as { checkoutUrl: string }).checkoutUrl
    }
    const get = async <T>(path: string): Promise<T> => (await api.get(path)).json as T
    const current = async () => (await get<{ subscription: Subscription | null }>(SUBSCRIPTION)).subscription
    const credits = async () => (await get<{ credits: number }>('/v1/admin/credits')).credits
    const invoices = () => get<Invoice[]>('/v1/admin/invoices')
    const debt = async () => {
      const [row] = await world.db<{ credit_debt: number }[]>`
        SELECT credit_debt FROM customers WHERE customer_id = ${customerId}`
      return row!.credit_debt
    }
    const is = (status: string | null) =>
      eventually(async () => expect((await current())?.status ?? null).to.equal(status))
    const has = (balance: number) => eventually(async () => expect(await credits()).to.equal(balance))

    async function subscribe(planId = 'basic', choice = {}): Promise<string> {
      await world.pay(await page(PLAN(planId)), 'pays', choice)
      await is('ACTIVE')
      await eventually(async () => expect((await invoices()).map((each) => each.status)).to.include('paid'))
      return (await current())!.subscriptionId
    }

    function node(): ProviderEvents {
      return createProviderEvents({
        provider: world.provider,
        log: createReadingLog(world.db),
        credited: () => {},
        reports: { unusable() {}, stranger() {}, secondSubscription() {} },
      })
    }

    async function sweep(): Promise<void> {
      await world.db`DELETE FROM provider_sweeps`
      const made: ProviderSweep = createProviderSweep({
        provider: world.provider,
        sweeps: createProviderSweeps(world.db),
        events: node(),
        clock: systemClock(),
        onFailed: (error) => expect.fail(String(error)),
      })
      await made.run()
    }

    describe('a plan', () => {
      it('that is paid is active, with its credits and an invoice', async () => {
        await subscribe()
        await has(100)
        const subscription = (await current())!
        expect(subscription).to.include({ customerId, planId: 'basic', autoRenew: true })
        expect(subscription.currentPeriodEnd).to.be.above(subscription.currentPeriodStart)
        const [invoice] = await invoices()
        expect(invoice).to.include({ status: 'paid', amount: 1_000, customerId })
        expect(invoice?.subscriptionId).to.equal(subscription.subscriptionId)
      })

      it('that is paid late is pending until then', async () => {
        await world.pay(await page(PLAN('basic')), 'pays-late')
        await is('PENDING')
        await has(0)
        await world.advance(1)
        await is('ACTIVE')
        await has(100)
      })

      for (const outcome of ['fails', 'abandons'] as const) {
        it(`whose customer ${outcome} brings nothing, and may be bought again`, async () => {
          await world.pay(await page(PLAN('basic')), outcome)
          await has(0)
          expect((await current())?.status ?? 'CANCELLED').to.be.oneOf(['CANCELLED', 'PENDING'])
          await subscribe()
          await has(100)
        })
      }

      it('brings all its credits with a coupon, also one for everything', async () => {
        await subscribe('basic', { amountInCents: 400 })
        await has(100)
        expect((await invoices())[0]).to.include({ status: 'paid', amount: 400 })
      })

      it('that costs nothing brings its credits', async () => {
        await subscribe('basic', { amountInCents: 0 })
        await has(100)
        expect((await invoices())[0]).to.include({ status: 'paid', amount: 0 })
      })

      it('has one page while that is open, another one afterwards, and none while it lives', async () => {
        const first = await page(PLAN('basic'))
        expect(await page(PLAN('basic'))).to.equal(first)
        await world.pay(first, 'pays')
        await is('ACTIVE')
        const refused = await api.get(PLAN('basic'))
        expect([refused.status, (refused.json as { code: string }).code]).to.deep.equal([
          409,
          'subscription_exists',
        ])
        expect((await api.delete(`${SUBSCRIPTION}/immediate`)).status).to.equal(204)
        expect(await page(PLAN('basic'))).to.not.equal(first)
      })

      it('renews with its period, again and again', async () => {
        await subscribe()
        const first = (await current())!
        await world.advance(31)
        await has(200)
        await world.advance(31)
        await has(300)
        expect((await current())!.currentPeriodStart).to.be.above(first.currentPeriodEnd - 1)
        expect((await invoices()).map(({ status }) => status)).to.deep.equal(['paid', 'paid', 'paid'])
      })

      it('whose renewal fails is past due, and brings its credits once it is paid', async () => {
        const id = await subscribe()
        await world.act(id, 'fail-payment')
        await world.advance(31)
        await is('PAST_DUE')
        await has(100)
        await world.act(id, 'resume')
        await is('ACTIVE')
        await has(200)
      })
    })

    describe('a cancellation', () => {
      it('by our API ends with the period', async () => {
        await subscribe()
        expect((await api.delete(SUBSCRIPTION)).status).to.equal(200)
        await is('CANCELLING')
        expect((await api.delete(SUBSCRIPTION)).status).to.equal(409)
        await world.advance(32)
        await is('CANCELLED')
        await has(100)
      })

      it('by our API ends now', async () => {
        await subscribe()
        expect((await api.delete(`${SUBSCRIPTION}/immediate`)).status).to.equal(204)
        await is('CANCELLED')
        expect((await api.delete(`${SUBSCRIPTION}/immediate`)).status).to.equal(409)
      })

      it('at the provider is followed, and so is taking it back', async () => {
        const id = await subscribe()
        await world.act(id, 'cancel')
        await is('CANCELLING')
        await world.act(id, 'resume')
        await is('ACTIVE')
        await world.act(id, 'cancel-now')
        await is('CANCELLED')
      })

      it('that a crash cut off after the provider’s yes is found by the sweep, and may be asked for again', async () => {
        const subscriptionId = await subscribe()
        world.losing(true)
        await world.provider.cancelAtPeriodEnd({ subscriptionId, reason: null })
        await world.provider.cancelAtPeriodEnd({ subscriptionId, reason: null })
        expect((await current())?.status).to.equal('ACTIVE')
        await sweep()
        expect((await current())?.status).to.equal('CANCELLING')
        await world.provider.cancelNow({ subscriptionId, reason: null })
        expect((await api.delete(`${SUBSCRIPTION}/immediate`)).status).to.equal(204)
      })
    })

    describe('a pack', () => {
      beforeEach(async () => {
        await subscribe()
        await has(100)
      })

      it('brings its credits and an invoice', async () => {
        await world.pay(await page(PACK), 'pays')
        await has(150)
        expect(await invoices()).to.have.length(2)
        expect((await invoices()).map(({ amount }) => amount).sort()).to.deep.equal([1_000, 500])
      })

      it('brings credits for what was paid', async () => {
        await world.pay(await page(PACK), 'pays', { amountInCents: 250 })
        await has(125)
      })

      it('brings nothing for nothing', async () => {
        await world.pay(await page(PACK), 'pays', { amountInCents: 0 })
        await has(100)
      })

      it('waits for the money', async () => {
        const url = await page(PACK)
        await world.pay(url, 'pays-late')
        await has(100)
        expect(await page(PACK), 'a completed page').to.not.equal(url)
        await world.advance(1)
        await has(150)
      })

      if (hasTax) {
        it('brings credits for what was paid without tax', async () => {
          await world.pay(await page(PACK), 'pays', { amountInCents: 250, taxInCents: 90 })
          await has(125)
          expect((await invoices()).map(({ amount }) => amount)).to.include(340)
        })
      }

      it('may be paid back, in parts', async () => {
        const url = await page(PACK)
        await world.pay(url, 'pays')
        await has(150)
        const { invoiceId } = (await invoices()).find(({ amount }) => amount === 500)!
        await world.refund(invoiceId, url, 250)
        await has(125)
        await world.refund(invoiceId, url)
        await has(100)
        await eventually(async () =>
          expect((await invoices()).find((each) => each.invoiceId === invoiceId)?.status).to.equal(
            'refunded',
          ),
        )
      })
    })

    describe('another plan', () => {
      it('brings the difference for what is left, once', async () => {
        const id = await subscribe()
        await has(100)
        await world.act(id, 'change-plan', 'large')
        await eventually(async () => expect((await current())?.planId).to.equal('large'))
        // At the begin of the period; how much of it has passed is the provider's.
        await eventually(async () => expect(await credits()).to.be.within(995, 1_000))
        const balance = await credits()
        await world.act(id, 'change-plan', 'basic')
        await world.act(id, 'change-plan', 'large')
        await world.repeatAll()
        await has(balance)
        await world.advance(31)
        await has(balance + 1_000)
      })

      it('is the plan at once when the difference is paid late, and brings its credits with the money, once', async () => {
        const id = await subscribe()
        await has(100)
        await world.act(id, 'change-plan', 'large', 'pays-late')
        await eventually(async () =>
          expect((await invoices()).map(({ status }) => status)).to.include('open'),
        )
        await world.repeatAll()
        expect((await current())?.planId).to.equal('large')
        expect(await credits()).to.equal(100)
        await world.advance(1)
        await eventually(async () => expect(await credits()).to.be.within(995, 1_000))
        const balance = await credits()
        await world.repeatAll()
        await sweep()
        await has(balance)
      })

      it('brings nothing for a difference that is never paid, until the next period', async () => {
        const id = await subscribe()
        await has(100)
        await world.act(id, 'change-plan', 'large', 'fails')
        await eventually(async () =>
          expect((await invoices()).map(({ status }) => status)).to.include('void'),
        )
        await world.repeatAll()
        expect((await current())?.planId).to.equal('large')
        expect(await credits()).to.equal(100)
        await world.advance(31)
        await has(1_100)
      })

      it('gives its credits back with the money of the difference, and brings them again when that is paid anew', async () => {
        const id = await subscribe()
        await has(100)
        await world.act(id, 'change-plan', 'large')
        await eventually(async () => expect(await credits()).to.be.within(995, 1_000))
        const brought = (await credits()) - 100
        const { invoiceId, amount } = (await invoices()).find((each) => each.amount !== 1_000)!
        const half = Math.floor(amount / 2)
        await world.refund(invoiceId, undefined, half)
        const left = await eventually(async () => {
          const balance = await credits()
          expect(balance).to.be.within(100 + brought / 2 - 1, 100 + brought / 2 + 1)
          return balance
        })
        await world.repeatAll()
        await has(left)
        await world.refund(invoiceId, undefined)
        await has(100)
        await world.act(id, 'change-plan', 'basic')
        await world.act(id, 'change-plan', 'large')
        await eventually(async () => expect(await credits()).to.be.within(995, 1_000))
      })
    })

    describe('money that goes back', () => {
      it('takes its credits, in parts', async () => {
        await subscribe()
        const [{ invoiceId }] = (await invoices()) as [Invoice]
        await world.refund(invoiceId, undefined, 250)
        await has(75)
        await world.refund(invoiceId, undefined)
        await has(0)
        await eventually(async () => expect((await invoices())[0]?.status).to.equal('refunded'))
      })

      it('leaves a debt of what is spent, which the next period pays', async () => {
        await subscribe()
        await has(100)
        await world.db`UPDATE customers SET credits = credits - 80 WHERE customer_id = ${customerId}`
        await world.refund((await invoices())[0]!.invoiceId, undefined)
        await has(0)
        expect(await debt()).to.equal(80)
        await world.advance(31)
        await has(20)
        expect(await debt()).to.equal(0)
      })

      it('is gone when a dispute is lost', async () => {
        await subscribe()
        await world.dispute((await invoices())[0]!.invoiceId, 'lost')
        await has(0)
      })

      it('comes back when a dispute is won', async () => {
        await subscribe()
        await has(100)
        await world.dispute((await invoices())[0]!.invoiceId, 'won')
        await has(100)
        const moved = await get<{ transactions: { type: string; amount: number }[] }>(
          '/v1/admin/credits/transactions',
        )
        expect(moved.transactions.map(({ amount }) => amount).sort((a, b) => a - b)).to.deep.equal([
          -100, 100, 100,
        ])
      })
    })

    describe('what is told', () => {
      it('again changes nothing', async () => {
        await subscribe()
        await world.pay(await page(PACK), 'pays')
        await has(150)
        const before = [await current(), await invoices(), await credits()]
        await world.repeatAll()
        expect([await current(), await invoices(), await credits()]).to.deep.equal(before)
      })

      it('by nobody is found by the sweep', async () => {
        world.losing(true)
        await world.pay(await page(PLAN('basic')), 'pays')
        expect(await current()).to.equal(null)
        await sweep()
        expect(await current()).to.include({ status: 'ACTIVE' })
        expect(await credits()).to.equal(100)
        await world.pay(await page(PACK), 'pays')
        await sweep()
        expect(await credits()).to.equal(150)
        await world.refund((await invoices()).find(({ amount }) => amount === 1_000)!.invoiceId, undefined)
        await sweep()
        expect(await credits()).to.equal(50)
      })

      it('twenty times at once at two nodes counts once', async () => {
        world.losing(true)
        await world.pay(await page(PLAN('basic')), 'pays')
        const references = []
        for await (const reference of world.provider.changes(0)) references.push(reference)
        const nodes = [node(), node()]
        const invoices = references.filter(({ kind }) => kind === 'invoice')
        const told = Array.from({ length: 20 }, (_, n) =>
          nodes[n % 2]!.receive(invoices[n % invoices.length]!),
        )
        for (const outcome of await Promise.all(told)) expect(outcome).to.equal('applied')
        await sweep()
        expect(await credits()).to.equal(100)
      })

      it('of two subscriptions leaves one, and pays the other back', async () => {
        const [basic, large] = [await page(PLAN('basic')), await page(PLAN('large'))]
        await world.pay(basic, 'pays')
        await is('ACTIVE')
        await world.pay(large, 'pays')
        await eventually(async () => expect(world.reported).to.include('second'))
        await eventually(async () =>
          expect((await invoices()).map(({ status }) => status).sort()).to.deep.equal(['paid', 'refunded']),
        )
        const { planId, status, subscriptionId } = (await current())!
        expect(status).to.equal('ACTIVE')
        await has(planId === 'basic' ? 100 : 1_000)
        const paid = (await invoices()).find((each) => each.status === 'paid')
        expect(paid?.subscriptionId).to.equal(subscriptionId)
      })

      it('of what is not there is nothing', async () => {
        for (const kind of ['subscription', 'invoice', 'pack'] as const) {
          expect(await world.provider.read({ kind, id: `none-${randomUUID()}` })).to.equal(undefined)
        }
      })
    })

    it('has a portal for who has bought, and none for others', async () => {
      expect((await api.get(`${SUBSCRIPTION}/portal-url`)).status).to.equal(404)
      await subscribe()
      const { status, json } = await api.get(`${SUBSCRIPTION}/portal-url`)
      expect(status).to.equal(200)
      expect(new URL((json as { portalUrl: string }).portalUrl).protocol).to.match(/^https?:$/)
    })
  })
}
