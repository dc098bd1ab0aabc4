/** The end of subscriptions at Stripe (docs/architecture/billing.md, "Stripe"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { newInvoicePayment, newPaymentIntent } from '../../support/stripe/payment-objects.ts'
import { rejection, shop } from './shop.ts'

describe('a cancellation at Stripe', () => {
  const on = shop()

  it('at the end of the period keeps the subscription until then, with the reason', async () => {
    const subscriptionId = await on.current.subscribe()
    await on.current.provider.cancelAtPeriodEnd({ subscriptionId, reason: 'too dear' })
    expect(await on.current.subscription(subscriptionId)).to.include({ status: 'CANCELLING' })
    const { cancellation_details } = on.current.double.store.get('subscriptions', subscriptionId)
    expect(cancellation_details).to.include({ comment: 'too dear' })
  })

  describe('while a lesser plan waits for the end of the period', () => {
    async function waiting() {
      const { double, large } = on.current
      const subscriptionId = await on.current.subscribe()
      await double.changePlan(subscriptionId, large.id)
      const { id: scheduleId } = await double.schedulePlan(subscriptionId, 'starter-monthly')
      return { double, provider: on.current.provider, subscriptionId, scheduleId }
    }

    it('is what the subscription goes to, without one', async () => {
      const { double, subscriptionId, scheduleId } = await waiting()
      expect(await on.current.subscription(subscriptionId)).to.include({ planId: 'large', status: 'ACTIVE' })
      await double.advance(32)
      expect(await on.current.subscription(subscriptionId)).to.include({ planId: 'starter' })
      expect(double.store.get('schedules', scheduleId).status).to.equal('completed')
    })

    it('lets that go, and holds: the subscription ends with its period', async () => {
      const { double, provider, subscriptionId, scheduleId } = await waiting()
      for (let time = 0; time < 2; time++) {
        await provider.cancelAtPeriodEnd({ subscriptionId, reason: 'too dear' })
        const read = await on.current.subscription(subscriptionId)
        expect(read).to.include({ planId: 'large', status: 'CANCELLING' })
      }
      expect(double.store.get('schedules', scheduleId).status).to.equal('released')
      expect(double.requests('POST /v1/subscription_schedules')).to.equal(1)
      await double.advance(32)
      expect(await on.current.subscription(subscriptionId)).to.include({
        planId: 'large',
        status: 'CANCELLED',
      })
    })

    it('goes on with the present plan when it is taken back', async () => {
      const { double, provider, subscriptionId } = await waiting()
      await provider.cancelAtPeriodEnd({ subscriptionId, reason: null })
      expect(await on.current.subscription(subscriptionId)).to.include({ status: 'CANCELLING' })
      await double.resume(subscriptionId)
      expect(await on.current.subscription(subscriptionId)).to.include({ status: 'ACTIVE', planId: 'large' })
      await double.advance(32)
      expect(await on.current.subscription(subscriptionId)).to.include({ status: 'ACTIVE', planId: 'large' })
      const { cycle } = await on.current.invoice(on.current.latestInvoice(subscriptionId))
      expect(cycle).to.include({ planId: 'large' })
    })

    it('now ends it at once', async () => {
      const { provider, subscriptionId } = await waiting()
      await provider.cancelNow({ subscriptionId, reason: null })
      expect(await on.current.subscription(subscriptionId)).to.include({ status: 'CANCELLED' })
    })

    it('is refused when the schedule cannot be let go', async () => {
      const { double, provider, subscriptionId, scheduleId } = await waiting()
      double.alter('schedules', scheduleId, { status: 'canceled' })
      const refused = await rejection(provider.cancelAtPeriodEnd({ subscriptionId, reason: null }))
      expect(refused.message).to.match(/is canceled/)
      expect(await on.current.subscription(subscriptionId)).to.include({ status: 'ACTIVE' })
    })
  })

  it('now ends it at once', async () => {
    const subscriptionId = await on.current.subscribe()
    await on.current.provider.cancelNow({ subscriptionId, reason: null })
    expect(await on.current.subscription(subscriptionId)).to.include({ status: 'CANCELLED' })
  })

  it('shortens a reason that is longer than Stripe takes', async () => {
    const subscriptionId = await on.current.subscribe()
    await on.current.provider.cancelNow({ subscriptionId, reason: 'x'.repeat(9_000) })
    const { cancellation_details } = on.current.double.store.get('subscriptions', subscriptionId)
    expect(cancellation_details!.comment).to.have.length(5_000)
  })

  it('is agreed again, also when the end has come before', async () => {
    const subscriptionId = await on.current.subscribe()
    const cancellation = { subscriptionId, reason: 'why' }
    const { provider } = on.current
    for (let time = 0; time < 2; time++) await provider.cancelAtPeriodEnd(cancellation)
    for (let time = 0; time < 2; time++) await provider.cancelNow(cancellation)
    await provider.cancelAtPeriodEnd(cancellation)
    expect(await on.current.subscription(subscriptionId)).to.include({ status: 'CANCELLED' })
    expect(on.current.double.requests('POST /v1/subscription_schedules')).to.equal(0)
  })

  it('of a subscription that never was is refused', async () => {
    const cancellation = { subscriptionId: 'sub_of-nobody_1', reason: null }
    const { provider } = on.current
    for (const work of [
      provider.cancelAtPeriodEnd(cancellation),
      provider.cancelNow(cancellation),
      provider.cancelAndRefund(cancellation.subscriptionId),
    ]) {
      expect((await rejection(work)).message).to.match(/No such subscription/)
    }
  })

  it('with a refund pays back every paid invoice, what is left of it, once', async () => {
    const { double, provider } = on.current
    const subscriptionId = await on.current.subscribe()
    const first = on.current.latestInvoice(subscriptionId)
    await double.refund(first, 900)
    await double.advance(32)
    const second = on.current.latestInvoice(subscriptionId)
    for (let time = 0; time < 2; time++) await provider.cancelAndRefund(subscriptionId)
    expect(await on.current.subscription(subscriptionId)).to.include({ status: 'CANCELLED' })
    for (const id of [first, second]) {
      expect(await on.current.invoice(id)).to.include({ returnedInCents: 4_900 })
    }
    expect(double.store.list('refunds').map(({ amount }) => amount)).to.have.members([900, 4_000, 4_900])
  })

  it('with a refund pays back also what is paid while it ends', async () => {
    const { double, provider } = on.current
    const subscriptionId = await on.current.subscribe()
    double.failPayment(subscriptionId)
    await double.advance(32)
    const open = double.store.get('invoices', on.current.latestInvoice(subscriptionId))
    const end = double.subscriptions.cancelNow.bind(double.subscriptions)
    double.subscriptions.cancelNow = (...asked) => {
      double.subscriptions.payInvoice(open)
      end(...asked)
    }
    await provider.cancelAndRefund(subscriptionId)
    expect(await on.current.invoice(open.id)).to.include({ status: 'paid', returnedInCents: 4_900 })
  })

  it('with a refund leaves out a payment that was tried, and brought nothing', async () => {
    const { double, provider } = on.current
    const subscriptionId = await on.current.subscribe()
    const invoice = double.store.get('invoices', on.current.latestInvoice(subscriptionId))
    const made = { amount: 4_900, currency: 'brl', customer: String(invoice.customer), metadata: {} }
    const tried = newInvoicePayment(double.store, invoice, newPaymentIntent(double.store, made).id)
    Object.assign(tried, { status: 'canceled', amount_paid: null })
    await provider.cancelAndRefund(subscriptionId)
    expect(await on.current.invoice(invoice.id)).to.include({ returnedInCents: 4_900 })
    expect(double.store.list('refunds')).to.have.length(1)
  })

  it('with a refund leaves to the bank what it holds', async () => {
    const { double, provider } = on.current
    const subscriptionId = await on.current.subscribe()
    await double.dispute(on.current.latestInvoice(subscriptionId), 'lost')
    await provider.cancelAndRefund(subscriptionId)
    expect(double.store.list('refunds')).to.have.length(0)
  })

  it('with a refund ends it also when Stripe refuses that for another reason, and says which', async () => {
    const { double, provider } = on.current
    const subscriptionId = await on.current.subscribe()
    const charge = double.money.chargeOf(on.current.latestInvoice(subscriptionId))
    double.alter('paymentIntents', String(charge.payment_intent), { latest_charge: 'ch_gone' })
    const [reason, ...more] = await provider.cancelAndRefund(subscriptionId)
    expect(reason).to.match(/No such charge/)
    expect(more).to.deep.equal([])
    expect(double.store.find('subscriptions', subscriptionId)).to.include({ status: 'canceled' })
  })
})
