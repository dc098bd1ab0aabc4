/** Checkout pages of Stripe (docs/architecture/billing.md, "Stripe"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Clock } from '../../../internal/runtime/clock.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { inner, parseForm } from '../../support/stripe/form.ts'
import { CUSTOMER, RETURN_URL, shop } from './shop.ts'

describe('a checkout at Stripe', () => {
  const on = shop()

  /** The form of the last request to make a page. */
  function lastForm() {
    const made = on.current.double.api.asked.filter(
      ({ method, path }) => method === 'POST' && path === '/v1/checkout/sessions',
    )
    return parseForm(made.at(-1)!.body)
  }

  it('of a plan names the customer and the plan, on itself and on the subscription', async () => {
    expect(await on.current.planPage()).to.match(/^http:/)
    const form = lastForm()
    expect(form).to.deep.include({
      mode: 'subscription',
      customer: on.current.customers.get(CUSTOMER),
      success_url: RETURN_URL,
      cancel_url: RETURN_URL,
      adaptive_pricing: { enabled: 'false' },
      line_items: { 0: { price: on.current.starter.id, quantity: '1' } },
      subscription_data: { metadata: { penstock_customer: CUSTOMER, penstock_plan: 'starter' } },
    })
    expect(inner(form, 'metadata')).to.include({ penstock_customer: CUSTOMER, penstock_plan: 'starter' })
  })

  it('of a pack names the customer and the pack, and makes an invoice', async () => {
    expect(await on.current.packPage()).to.match(/^http:/)
    const form = lastForm()
    const metadata = { penstock_customer: CUSTOMER, penstock_pack: 'small-pack' }
    expect(form).to.deep.include({
      mode: 'payment',
      adaptive_pricing: { enabled: 'false' },
      payment_intent_data: { metadata },
      invoice_creation: { enabled: 'true', invoice_data: { metadata } },
    })
    expect(inner(form, 'metadata')).to.include(metadata)
  })

  it('that is open is shown again, to all nodes', async () => {
    const page = await on.current.planPage()
    expect(await on.current.planPage()).to.equal(page)
    const checkout = { customerId: CUSTOMER, offerId: on.current.starter.id, planId: 'starter' }
    expect(await on.current.open().checkoutUrl({ ...checkout, buys: 'plan' })).to.equal(page)
  })

  it('that was completed or has expired is never shown again', async () => {
    for (const outcome of ['pays', 'abandons'] as const) {
      const page = await on.current.packPage()
      await on.current.double.completeCheckout(page!, outcome)
      expect(await on.current.packPage()).to.not.equal(page)
    }
  })

  it('that is about to end is not shown again', async () => {
    const page = await on.current.packPage()
    const id = page!.split('/').at(-1)!
    on.current.double.alter('sessions', id, { expires_at: Math.floor(Date.now() / 1_000) + 60 })
    expect(await on.current.packPage()).to.not.equal(page)
  })

  it('is one of its own for another offer, another customer and another price', async () => {
    const { double, large } = on.current
    const pages = [await on.current.planPage(), await on.current.packPage(), await on.current.planPage('zed')]
    const checkout = { customerId: CUSTOMER, offerId: large.id, planId: 'large' }
    pages.push(await on.current.provider.checkoutUrl({ ...checkout, buys: 'plan' }))
    double.alter('prices', on.current.starter.id, { lookup_key: null })
    double.sell({ amounts: { brl: 1 }, recurring: 'month', lookupKey: 'starter-monthly' })
    pages.push(await on.current.planPage())
    expect(new Set(pages).size).to.equal(5)
  })

  it('is not there for an offer that does not exist, or that is not sold', async () => {
    const { double, provider, pack, starter, large } = on.current
    const buy = (offerId: string | null) =>
      provider.checkoutUrl({ customerId: CUSTOMER, offerId, buys: 'plan', planId: 'starter' })
    for (const offerId of [null, 'no-such-key', 'price_of-nobody', pack.id]) {
      expect(await buy(offerId), `${offerId}`).to.equal(undefined)
    }
    const checkout = { customerId: CUSTOMER, offerId: large.id, packId: 'small-pack' }
    expect(await provider.checkoutUrl({ ...checkout, buys: 'pack' })).to.equal(undefined)
    double.alter('prices', large.id, { active: false })
    expect(await buy(large.id)).to.equal(undefined)
    double.alter('products', String(starter.product), { active: false })
    expect(await buy('starter-monthly')).to.equal(undefined)
    expect(double.requests('POST')).to.equal(0)
  })

  it('is one page of one customer, however many ask at once', async () => {
    const clock = standing()
    const nodes = [on.current.open({ clock }), on.current.open({ clock })]
    const checkout = { customerId: CUSTOMER, offerId: 'starter-monthly', planId: 'starter' }
    const pages = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        nodes[index % 2]!.checkoutUrl({ ...checkout, buys: 'plan' as const }),
      ),
    )
    expect(new Set(pages).size).to.equal(1)
    expect(on.current.double.store.list('customers')).to.have.length(1)
    expect(on.current.double.store.list('sessions')).to.have.length(1)
  })

  it('has the customer that was made before a node died, even if it was not kept', async () => {
    const clock = standing()
    const dying = on.current.open({
      clock,
      customers: {
        find: async () => undefined,
        keep: async () => {
          throw new Error('killed')
        },
        replace: () => Promise.reject(new Error('killed')),
      },
    })
    const checkout = { customerId: CUSTOMER, offerId: 'starter-monthly', planId: 'starter' }
    await dying.checkoutUrl({ ...checkout, buys: 'plan' }).catch(() => {})
    expect(await on.current.open({ clock }).checkoutUrl({ ...checkout, buys: 'plan' })).to.match(/^http:/)
    expect(on.current.double.store.list('customers').map(({ id }) => id)).to.deep.equal([
      on.current.customers.get(CUSTOMER),
    ])
  })

  it('has the customer that another node has kept first', async () => {
    const { double } = on.current
    await on.current.planPage('zed')
    const first = on.current.customers.get('zed')!
    const customers = { find: async () => undefined, keep: async () => first }
    const late = on.current.open({ customers: { ...customers, replace: () => Promise.reject(new Error()) } })
    const checkout = { customerId: CUSTOMER, offerId: 'starter-monthly', planId: 'starter' }
    const page = await late.checkoutUrl({ ...checkout, buys: 'plan' })
    expect(double.store.get('sessions', page!.split('/').at(-1)!).customer).to.equal(first)
  })

  it('has a new customer when somebody deleted the old one at Stripe: one, however many ask at once', async () => {
    const { double, customers, replaced } = on.current
    await on.current.planPage()
    const gone = customers.get(CUSTOMER)!
    await double.deleteCustomer(gone)
    const clock = standing()
    const nodes = [on.current.open({ clock }), on.current.open({ clock })]
    const checkout = { customerId: CUSTOMER, offerId: 'starter-monthly', planId: 'starter' }
    const pages = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        nodes[index % 2]!.checkoutUrl({ ...checkout, buys: 'plan' as const }),
      ),
    )
    expect(new Set(pages).size).to.equal(1)
    const [made, ...others] = double.store.list('customers').filter(({ id }) => id !== gone)
    expect(others).to.deep.equal([])
    expect(customers.get(CUSTOMER)).to.equal(made!.id)
    expect(double.store.get('sessions', pages[0]!.split('/').at(-1)!).customer).to.equal(made!.id)
    expect(replaced).to.deep.equal([`${CUSTOMER} ${gone}`])
  })

  it('has a new customer each time that one is deleted, and when Stripe does not know it at all', async () => {
    const { double, customers, replaced } = on.current
    await on.current.packPage()
    for (let time = 0; time < 2; time++) {
      await double.deleteCustomer(customers.get(CUSTOMER)!)
      await on.current.packPage()
    }
    customers.set(CUSTOMER, 'cus_of-nobody_1')
    expect(await on.current.packPage()).to.match(/^http:/)
    expect(new Set(replaced).size).to.equal(3)
    await on.current.packPage()
    expect(replaced).to.have.length(3)
  })

  it('asks for the same again after a failure with the same key', async () => {
    const node = on.current.open({ clock: standing() })
    const checkout = { customerId: CUSTOMER, offerId: 'starter-monthly', planId: 'starter' }
    const { double } = on.current
    await node.checkoutUrl({ ...checkout, buys: 'plan' })
    const [session] = double.store.list('sessions')
    // As if the list had not shown it yet.
    double.alter('sessions', session!.id, { metadata: {} })
    await node.checkoutUrl({ ...checkout, buys: 'plan' })
    expect(double.store.list('sessions')).to.have.length(1)
    const keys = double.api.asked
      .filter(({ method }) => method === 'POST')
      .map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys).size).to.equal(2)
  })
})

/** Nodes must be in one hour: keys of requests last so long. */
function standing(): Clock {
  const now = Date.now()
  return { ...systemClock(), now: () => now }
}
