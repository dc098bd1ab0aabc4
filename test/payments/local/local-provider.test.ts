import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { ObjectReference } from '../../../internal/billing/readings.ts'
import type { LocalProvider } from '../../../internal/payments/local/local-provider.ts'
import type { CheckoutOutcome } from '../../../internal/payments/local/ports.ts'
import { connect, type Database } from '../../../internal/postgres/connection.ts'
import { eventually } from '../../support/eventually.ts'
import {
  arrived,
  BASE_URL,
  localProviderOver,
  publishDefaultCatalogue,
  Told,
} from '../../support/local-payments.ts'
import { freshDatabase } from '../../support/servers.ts'

describe('the local payment provider', () => {
  let db: Database
  let provider: LocalProvider
  let told: Told
  let now: number

  before(async () => {
    db = connect(await freshDatabase(), { max: 6 })
    await publishDefaultCatalogue(db)
  })
  after(() => db.end())
  beforeEach(async () => {
    await db`UPDATE local_payments SET document = NULL`
    told = new Told()
    now = Date.UTC(2026, 4, 20)
    provider = localProviderOver(db, told, { now: () => now })
  })

  const plan = (planId: string, customerId = 'ada') =>
    provider.checkoutUrl({ buys: 'plan', planId, customerId, offerId: null })
  const pack = (packId: string, customerId = 'ada') =>
    provider.checkoutUrl({ buys: 'pack', packId, customerId, offerId: null })
  const idIn = (url: string | undefined) => url!.split('/').at(-1)!

  async function buyPlan(planId = 'starter', outcome: CheckoutOutcome = 'pays'): Promise<string> {
    await provider.choose(idIn(await plan(planId)), { outcome })
    const { subscriptions } = await provider.list('ada')
    return subscriptions[0]!.subscriptionId
  }

  async function changes(since: number): Promise<ObjectReference[]> {
    const all: ObjectReference[] = []
    for await (const each of provider.changes(since)) all.push(each)
    return all
  }

  it('sells what is in the catalogue, with offers or without', async () => {
    const url = await plan('starter')
    expect(url).to.match(/^http:\/\/127\.0\.0\.1:8080\/local\/payments\/checkouts\/cs_[0-9a-f]{24}$/)
    expect(await plan('starter')).to.equal(url)
    expect(await provider.checkout(idIn(url))).to.include({ amountInCents: 4900, currency: 'BRL' })
    const packUrl = await pack('credits-10k')
    expect(await provider.checkout(idIn(packUrl))).to.deep.include({
      kind: 'pack',
      packId: 'credits-10k',
      amountInCents: 980,
      currency: 'BRL',
    })
    expect(await plan('nothing')).to.equal(undefined)
    expect(await pack('nothing')).to.equal(undefined)
    expect(provider).to.include({ name: 'local', sellsWithoutOffer: true })
  })

  it('sells in dollars where a plan has no other price, and nothing that is not active', async () => {
    await db`INSERT INTO plans (plan_id, name, price_in_cents, currency, prices, credits_per_cycle, is_active)
      VALUES ('dollars', 'D', 700, 'USD', '{"USD":700}', 1000, true),
        ('gone', 'G', 700, 'USD', '{"USD":700}', 1000, false)`
    expect(await provider.checkout(idIn(await plan('dollars')))).to.include({
      amountInCents: 700,
      currency: 'USD',
    })
    expect(await plan('gone')).to.equal(undefined)
    const subscriptionId = await buyPlan('dollars')
    await provider.act(subscriptionId, { action: 'change-plan', planId: 'growth' })
    expect((await provider.read({ kind: 'subscription', id: subscriptionId }))!).to.include({
      planId: 'growth',
    })
    const toReais = await provider
      .act(await buyPlan('starter'), { action: 'change-plan', planId: 'dollars' })
      .catch((error) => error)
    expect(toReais).to.include({ kind: 'invalid', message: 'planId has no price in BRL' })
    await db`DELETE FROM plans WHERE plan_id IN ('dollars', 'gone')`
  })

  it('has one customer of its own for each account', async () => {
    await provider.choose(idIn(await plan('starter')), { outcome: 'pays' })
    await provider.choose(idIn(await pack('credits-10k')), { outcome: 'pays' })
    const objects = await Promise.all((await changes(0)).map((each) => provider.read(each)))
    const customers = new Set(objects.map((each) => each!.providerCustomerId))
    expect([...customers]).to.have.length(1)
    expect([...customers][0]).to.match(/^cus_[0-9a-f]{24}$/)
  })

  it('has a page for customers that it knows', async () => {
    expect(await provider.portalUrl('ada')).to.equal(undefined)
    await plan('starter')
    expect(await provider.portalUrl('ada')).to.equal(`${BASE_URL}/local/payments/customers/ada`)
    expect(await provider.portalUrl('bob')).to.equal(undefined)
  })

  it('tells what happens by signed events that name objects', async () => {
    const subscriptionId = await buyPlan()
    const [first, second] = told.bodies
    expect(first).to.deep.equal({
      eventId: first.eventId,
      kind: 'subscription.changed',
      customerId: 'ada',
      subscriptionId,
      at: now,
      objectId: subscriptionId,
    })
    expect(second).to.include({ kind: 'invoice.changed', subscriptionId })
    const references = await Promise.all(
      told.notifications.map((each) => provider.notification(arrived(each))),
    )
    expect(references).to.deep.equal([
      [{ kind: 'subscription', id: subscriptionId }],
      [{ kind: 'invoice', id: second.objectId }],
    ])
    expect(await provider.events()).to.deep.equal([
      { eventId: first.eventId, kind: 'subscription.changed', customerId: 'ada', subscriptionId, at: now },
      { eventId: second.eventId, kind: 'invoice.changed', customerId: 'ada', subscriptionId, at: now },
    ])
  })

  it('tells again, in order, what was not acknowledged', async () => {
    told.acknowledge = () => false
    await buyPlan()
    const first = told.bodies.map(({ eventId }) => eventId)
    expect(first).to.have.length(2)
    await provider.advance(1)
    expect(told.bodies.map(({ eventId }) => eventId)).to.deep.equal([...first, ...first])
    told.notifications.length = 0
    told.acknowledge = () => true
    await provider.advance(1)
    expect(told.bodies.map(({ eventId }) => eventId)).to.deep.equal(first)
    told.notifications.length = 0
    await provider.advance(1)
    expect(told.notifications).to.have.length(0)
    expect(told.problems).to.deep.equal([])
  })

  it('tells again, with the sweep of a start, what was not acknowledged', async () => {
    told.acknowledge = () => false
    await buyPlan()
    told.notifications.length = 0
    told.acknowledge = () => true
    const restarted = localProviderOver(db, told, { now: () => now })
    for await (const _ of restarted.changes(now + 1)) expect.fail('nothing has changed since')
    await eventually(async () => expect(told.notifications).to.have.length(2))
  })

  it('does what it is asked when nobody can be told', async () => {
    const failure = new Error('away')
    told.acknowledge = () => {
      throw failure
    }
    await buyPlan()
    expect(told.notifications).to.have.length(1)
    expect(told.problems).to.deep.equal([failure])
    told.acknowledge = () => true
    await provider.advance(1)
    expect(told.notifications).to.have.length(3)
  })

  it('remembers what was told before telling failed', async () => {
    told.acknowledge = () => {
      if (told.notifications.length > 1) throw new Error('away')
      return true
    }
    await buyPlan()
    told.acknowledge = () => true
    await provider.advance(1)
    const [first, second] = await provider.events()
    expect(told.bodies.map(({ eventId }) => eventId)).to.deep.equal([
      first!.eventId,
      second!.eventId,
      second!.eventId,
    ])
  })

  it('repeats an event', async () => {
    await buyPlan()
    const [{ eventId }] = told.bodies
    const again = await provider.repeat(eventId)
    expect(again.eventId).to.equal(eventId)
    expect(told.bodies.map((each) => each.eventId)[2]).to.equal(eventId)
    expect(await provider.repeat('evt_none').catch((error) => error)).to.include({ kind: 'unknown' })
  })

  it('shows a dispute both held and decided to who reads it when it is told', async () => {
    await buyPlan()
    const { paymentId } = (await provider.list('ada')).payments[0]!
    const seen: number[] = []
    told.acknowledge = async () => {
      const reading = await provider.read({ kind: 'invoice', id: paymentId })
      seen.push(reading?.kind === 'invoice' ? reading.returnedInCents : -1)
      return true
    }
    const { payment } = await provider.dispute(paymentId, 'won')
    expect(seen).to.deep.equal([4900, 0])
    expect(payment).to.include({ state: 'paid', refundedInCents: 0 })
  })

  it('cancels for billing as often as it is asked, and tells it in the background', async () => {
    const subscriptionId = await buyPlan()
    const before = told.notifications.length
    const cancellation = { subscriptionId, reason: 'dear' }
    await provider.cancelAtPeriodEnd(cancellation)
    await provider.cancelAtPeriodEnd(cancellation)
    const read = async () => {
      const reading = await provider.read({ kind: 'subscription', id: subscriptionId })
      return reading?.kind === 'subscription' ? reading.status : undefined
    }
    expect(await read()).to.equal('CANCELLING')
    await provider.cancelNow(cancellation)
    await provider.cancelNow(cancellation)
    await provider.cancelAtPeriodEnd(cancellation)
    expect(await read()).to.equal('CANCELLED')
    await eventually(() => told.notifications.length === before + 2)
    const unknown = await provider
      .cancelNow({ subscriptionId: 'sub_none', reason: null })
      .catch((error) => error)
    expect(unknown.message).to.equal('Subscription not found')
  })

  it('cancels and refunds all that was paid, also while it tells', async () => {
    const subscriptionId = await buyPlan()
    await provider.act(subscriptionId, { action: 'change-plan', planId: 'growth' })
    told.acknowledge = async () => {
      await provider.cancelAndRefund(subscriptionId)
      return true
    }
    await provider.advance(1)
    await provider.cancelAndRefund(subscriptionId)
    const { payments, subscriptions } = await provider.list('ada')
    expect(subscriptions).to.deep.equal([{ subscriptionId, state: 'CANCELLED' }])
    expect(payments.map(({ state, refundedInCents }) => [state, refundedInCents])).to.deep.equal([
      ['refunded', 10_000],
      ['refunded', 4_900],
    ])
    await provider.advance(1)
  })

  it('refunds nothing of others, and nothing that was never paid', async () => {
    await provider.choose(idIn(await pack('credits-10k')), { outcome: 'pays' })
    const first = await buyPlan()
    const pending = await buyPlan('growth', 'pays-late')
    await provider.cancelAndRefund(pending)
    await provider.cancelAndRefund(pending)
    const { payments, subscriptions } = await provider.list('ada')
    expect(payments.map(({ state }) => state)).to.deep.equal(['failed', 'paid', 'paid'])
    expect(subscriptions).to.deep.equal([
      { subscriptionId: pending, state: 'CANCELLED' },
      { subscriptionId: first, state: 'ACTIVE' },
    ])
  })

  it('yields what has changed, by the real clock', async () => {
    const subscriptionId = await buyPlan()
    await provider.advance(100)
    now += 60_000
    expect(await changes(now)).to.deep.equal([])
    await provider.act(subscriptionId, { action: 'cancel' })
    expect(await changes(now)).to.deep.equal([{ kind: 'subscription', id: subscriptionId }])
    expect((await changes(now - 60_000)).length).to.equal(5)
  })

  it('reads nothing of strangers', async () => {
    for (const kind of ['subscription', 'invoice', 'pack'] as const) {
      expect(await provider.read({ kind, id: 'x' })).to.equal(undefined)
    }
    expect(await changes(0)).to.deep.equal([])
  })

  it('is the same in several processes', async () => {
    const second = localProviderOver(db, told, { now: () => now })
    const checkoutId = idIn(await plan('starter'))
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) =>
        (n % 2 ? provider : second).choose(checkoutId, { outcome: 'pays' }),
      ),
    )
    expect(answers.filter(({ status }) => status === 'fulfilled')).to.have.length(1)
    expect((await second.list('ada')).subscriptions).to.have.length(1)
    const notification = arrived(told.notifications[0]!)
    expect(await second.notification(notification)).to.deep.equal(await provider.notification(notification))
  })
})
