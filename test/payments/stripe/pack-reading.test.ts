/** Checkouts of packs at Stripe in our words (docs/architecture/billing.md, "Stripe"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type Stripe from 'stripe'

import { CUSTOMER, rejection, shop } from './shop.ts'

describe('the checkout of a pack at Stripe', () => {
  const on = shop()

  it('says what was paid, with tax and without, and in which currency', async () => {
    const id = await on.current.buyPack('pays', { amountInCents: 150, taxInCents: 30, currency: 'usd' })
    const { store } = on.current.double
    const { created, customer, invoice } = store.get('sessions', id)
    expect(await on.current.packOf(id)).to.deep.equal({
      kind: 'pack',
      checkoutId: id,
      customerId: CUSTOMER,
      providerCustomerId: customer,
      packId: 'small-pack',
      state: 'paid',
      paidInCents: 150,
      currency: 'USD',
      amount: 180,
      returnedInCents: 0,
      createdAt: created * 1_000,
      paidAt: store.get('invoices', invoice).status_transitions.paid_at! * 1_000,
      invoiceId: id,
    })
  })

  it('is open until somebody decides', async () => {
    const id = new URL((await on.current.packPage())!).pathname.split('/').at(-1)!
    expect(await on.current.packOf(id)).to.include({ state: 'open', paidAt: null, amount: 1_000 })
  })

  it('is paid only when the money came: Pix and boleto', async () => {
    const id = await on.current.buyPack('pays-late')
    expect(on.current.double.store.get('sessions', id)).to.include({ status: 'complete' })
    expect(await on.current.packOf(id)).to.include({ state: 'open', paidAt: null })
    await on.current.double.settleLatePayments()
    expect(await on.current.packOf(id)).to.include({ state: 'paid', paidInCents: 1_000 })
  })

  it('has failed when the money never comes', async () => {
    const id = await on.current.buyPack('fails')
    expect(await on.current.packOf(id)).to.include({ state: 'failed', paidAt: null, returnedInCents: 0 })
  })

  for (const status of ['processing', 'requires_action'] as const) {
    it(`is open while its payment is ${status}`, async () => {
      const id = await on.current.buyPack('pays-late')
      const { payment_intent } = on.current.double.store.get('sessions', id)
      on.current.double.alter('paymentIntents', String(payment_intent), { status })
      expect(await on.current.packOf(id)).to.include({ state: 'open' })
    })
  }

  it('has failed when its payment was cancelled', async () => {
    const id = await on.current.buyPack('pays-late')
    const { payment_intent } = on.current.double.store.get('sessions', id)
    on.current.double.alter('paymentIntents', String(payment_intent), { status: 'canceled' })
    expect(await on.current.packOf(id)).to.include({ state: 'failed' })
  })

  it('expires when nobody pays', async () => {
    expect(await on.current.packOf(await on.current.buyPack('abandons'))).to.include({ state: 'expired' })
  })

  it('that cost nothing is paid', async () => {
    const id = await on.current.buyPack('pays', { amountInCents: 0 })
    expect(await on.current.packOf(id)).to.include({ state: 'paid', paidInCents: 0, amount: 0 })
  })

  it('tells what went back, and what a dispute holds unless it is won', async () => {
    const id = await on.current.buyPack()
    await on.current.double.refund(id, 300)
    expect(await on.current.packOf(id)).to.include({ returnedInCents: 300 })
    await on.current.double.dispute(id, 'won')
    expect(await on.current.packOf(id)).to.include({ returnedInCents: 300 })
    await on.current.double.dispute(id, 'lost')
    expect(await on.current.packOf(id)).to.include({ returnedInCents: 1_000 })
  })

  it('in a currency that is not supported cannot be used', async () => {
    const id = await on.current.buyPack()
    for (const currency of ['eur', null]) {
      on.current.double.alter('sessions', id, { currency })
      expect(await rejection(on.current.packOf(id))).to.include({ name: 'UnusableReadingError' })
    }
  })

  it('that sells a plan, is of somebody else, or is not there, is no pack of ours', async () => {
    const { double } = on.current
    const id = await on.current.buyPack()
    const strange: Partial<Stripe.Checkout.Session>[] = [
      { mode: 'subscription' },
      { metadata: {} },
      { metadata: { penstock_pack: 'small-pack' } },
      { metadata: { penstock_customer: CUSTOMER } },
      { metadata: null },
      { customer: null },
    ]
    const own = { ...double.store.get('sessions', id) }
    for (const fields of strange) {
      double.alter('sessions', id, { ...own, ...fields })
      expect(await on.current.packOf(id), JSON.stringify(fields)).to.equal(undefined)
    }
    expect(await on.current.packOf('cs_of-nobody_1')).to.equal(undefined)
  })
})
