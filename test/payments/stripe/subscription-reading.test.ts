/** Subscriptions of Stripe in our words (docs/architecture/billing.md, "Stripe"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type Stripe from 'stripe'

import { UnusableReadingError } from '../../../internal/billing/readings.ts'
import { CUSTOMER, rejection, shop } from './shop.ts'

const STATUSES: readonly (readonly [string, string])[] = [
  ['incomplete', 'PENDING'],
  ['incomplete_expired', 'CANCELLED'],
  ['trialing', 'ACTIVE'],
  ['active', 'ACTIVE'],
  ['past_due', 'PAST_DUE'],
  ['paused', 'PAST_DUE'],
  ['canceled', 'CANCELLED'],
  ['unpaid', 'PAST_DUE'],
]

describe('a subscription at Stripe', () => {
  const on = shop()

  it('says whose it is, its plan, its period and when it was made', async () => {
    const { double } = on.current
    const id = await on.current.subscribe()
    const { created, items, customer } = double.store.get('subscriptions', id)
    expect(await on.current.subscription(id)).to.deep.equal({
      kind: 'subscription',
      subscriptionId: id,
      customerId: CUSTOMER,
      providerCustomerId: customer,
      planId: 'starter',
      status: 'ACTIVE',
      currentPeriodStart: items.data[0]!.current_period_start * 1_000,
      currentPeriodEnd: items.data[0]!.current_period_end * 1_000,
      createdAt: created * 1_000,
    })
  })

  it('reads the same where API versions before 2025-03-31 put its period', async () => {
    const id = await on.current.subscribe()
    const read = await on.current.subscription(id)
    on.current.double.version = 'old'
    expect(await on.current.subscription(id)).to.deep.equal(read)
  })

  for (const [status, ours] of STATUSES) {
    it(`that is ${status} is ${ours}`, async () => {
      const id = await on.current.subscribe()
      on.current.double.alter('subscriptions', id, { status: status as Stripe.Subscription.Status })
      expect(await on.current.subscription(id)).to.include({ status: ours })
    })
  }

  for (const status of ['active', 'trialing', 'past_due'] as const) {
    for (const end of [{ cancel_at_period_end: true }, { cancel_at: 1_900_000_000 }]) {
      it(`that is ${status} with ${Object.keys(end)} is CANCELLING`, async () => {
        const id = await on.current.subscribe()
        on.current.double.alter('subscriptions', id, { status, ...end })
        expect(await on.current.subscription(id)).to.include({ status: 'CANCELLING' })
      })
    }
  }

  it('that has ended is CANCELLED, also when it was to end with its period', async () => {
    const id = await on.current.subscribe()
    await on.current.double.cancel(id)
    await on.current.double.advance(40)
    expect(await on.current.subscription(id)).to.include({ status: 'CANCELLED' })
  })

  it('in a state that is not known cannot be used', async () => {
    const id = await on.current.subscribe()
    const { double } = on.current
    double.alter('subscriptions', id, { status: 'constructor' as Stripe.Subscription.Status })
    expect(await rejection(on.current.subscription(id))).to.include({ name: 'UnusableReadingError' })
    double.forgiveShown()
  })

  it('waits for a first payment that comes late', async () => {
    const id = await on.current.subscribe('pays-late')
    expect(await on.current.subscription(id)).to.include({ status: 'PENDING' })
    await on.current.double.settleLatePayments()
    expect(await on.current.subscription(id)).to.include({ status: 'ACTIVE' })
  })

  it('is CANCELLED when its first payment fails', async () => {
    const id = await on.current.subscribe('fails')
    expect(await on.current.subscription(id)).to.include({ status: 'CANCELLED' })
  })

  it('follows a failed renewal and its payment', async () => {
    const id = await on.current.subscribe()
    on.current.double.failPayment(id)
    await on.current.double.advance(32)
    expect(await on.current.subscription(id)).to.include({ status: 'PAST_DUE' })
    await on.current.double.resume(id)
    expect(await on.current.subscription(id)).to.include({ status: 'ACTIVE' })
  })

  it('has the plan of its present price', async () => {
    const { double, large } = on.current
    const id = await on.current.subscribe()
    await double.advance(10)
    await double.changePlan(id, large.id)
    expect(await on.current.subscription(id)).to.include({ planId: 'large' })
  })

  it('keeps its plan when the lookup key moves to a new price of the same product', async () => {
    const { double, starter } = on.current
    const id = await on.current.subscribe()
    double.alter('prices', starter.id, { lookup_key: null })
    double.sell({
      amounts: { brl: 5_900 },
      recurring: 'month',
      lookupKey: 'starter-monthly',
      product: String(starter.product),
    })
    expect(await on.current.subscription(id)).to.include({ planId: 'starter' })
  })

  it('of an offer that no plan has cannot be used', async () => {
    const id = await on.current.subscribe()
    on.current.plans.shift()
    expect(await rejection(on.current.subscription(id))).to.include({ name: 'UnusableReadingError' })
  })

  it('of an offer that two plans of one product may have been cannot be used', async () => {
    const { double, starter, large } = on.current
    const id = await on.current.subscribe()
    double.alter('prices', starter.id, { lookup_key: null })
    double.alter('prices', large.id, { product: starter.product })
    double.sell({ amounts: { brl: 1 }, lookupKey: 'starter-monthly', product: String(starter.product) })
    expect(await rejection(on.current.subscription(id))).to.include({ name: 'UnusableReadingError' })
  })

  it('that cannot be used says whose it is, and so does its invoice', async () => {
    const { current } = on
    const id = await current.subscribe()
    const invoiceId = current.latestInvoice(id)
    current.plans.shift()
    const owner = { customerId: CUSTOMER, providerCustomerId: current.customers.get(CUSTOMER) }
    for (const reading of [current.subscription(id), current.invoice(invoiceId)]) {
      const error = await rejection(reading)
      expect(error).to.be.instanceOf(UnusableReadingError)
      expect((error as UnusableReadingError).owner).to.deep.equal(owner)
    }
  })

  it('without our metadata is nothing of ours, and neither is one that is not there', async () => {
    const id = await on.current.double.strangerEvent()
    expect(await on.current.subscription(id)).to.equal(undefined)
    expect(await on.current.subscription('sub_of-nobody_1')).to.equal(undefined)
  })

  it('names the payer, whatever account its metadata name', async () => {
    const { double, starter } = on.current
    await on.current.subscribe()
    const payer = on.current.customers.get(CUSTOMER)!
    const id = await double.createSubscription(payer, starter.id, { penstock_customer: 'another' })
    expect(await on.current.subscription(id)).to.include({ customerId: 'another', providerCustomerId: payer })
  })
})
