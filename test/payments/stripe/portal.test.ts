/** Stripe's billing portal (docs/architecture/billing.md, "Stripe"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { CUSTOMER, RETURN_URL, rejection, shop } from './shop.ts'

describe('the billing portal of Stripe', () => {
  const on = shop()

  it('is not there for somebody who never bought anything', async () => {
    expect(await on.current.provider.portalUrl(CUSTOMER)).to.equal(undefined)
    expect(on.current.double.requests()).to.equal(0)
  })

  it('is not there for somebody whose customer is deleted', async () => {
    await on.current.subscribe()
    await on.current.double.deleteCustomer(on.current.customers.get(CUSTOMER)!)
    expect(await on.current.provider.portalUrl(CUSTOMER)).to.equal(undefined)
  })

  it('fails when something else is missing than the customer', async () => {
    const { double, provider } = on.current
    await on.current.subscribe()
    await provider.portalUrl(CUSTOMER)
    const [configuration] = double.store.list('configurations')
    double.alter('configurations', configuration!.id, { id: 'bpc_of-nobody_1' })
    expect((await rejection(provider.portalUrl(CUSTOMER))).message).to.match(/No such configuration/)
  })

  it('allows what the domain knows, and no more', async () => {
    await on.current.subscribe()
    expect(await on.current.provider.portalUrl(CUSTOMER)).to.match(/^http:.*\/portal\//)
    const [configuration] = on.current.double.store.list('configurations')
    const { features, default_return_url } = configuration!
    expect(default_return_url).to.equal(RETURN_URL)
    expect(features.customer_update.enabled).to.equal(false)
    expect(features.invoice_history.enabled).to.equal(true)
    expect(features.payment_method_update.enabled).to.equal(true)
    expect(features.subscription_cancel).to.include({ enabled: true, mode: 'at_period_end' })
    expect(features.subscription_update).to.deep.include({
      enabled: true,
      default_allowed_updates: ['price'],
      proration_behavior: 'always_invoice',
      schedule_at_period_end: {
        conditions: [{ type: 'decreasing_item_amount' }, { type: 'shortening_interval' }],
      },
    })
    expect(features.subscription_update.products!.flatMap(({ prices }) => prices)).to.have.members([
      on.current.starter.id,
      on.current.large.id,
    ])
  })

  it('has one configuration, until the catalogue changes', async () => {
    await on.current.subscribe()
    // Keys of requests last an hour: all nodes are in one.
    const now = Date.now()
    const clock = { ...systemClock(), now: () => now }
    const nodes = [1, 2, 3].map(() => on.current.open({ clock }))
    await Promise.all(nodes.map((node) => node.portalUrl(CUSTOMER)))
    for (const node of nodes) await node.portalUrl(CUSTOMER)
    expect(on.current.double.store.list('configurations')).to.have.length(1)
    on.current.plans.pop()
    await on.current.provider.portalUrl(CUSTOMER)
    const [newest, ...others] = on.current.double.store.list('configurations')
    expect(others).to.have.length(1)
    expect(newest!.features.subscription_update.products).to.have.length(1)
    expect(on.current.double.store.list('portalSessions')[0]).to.include({ configuration: newest!.id })
  })

  it('puts the prices of one product together', async () => {
    const { double, starter, large } = on.current
    await on.current.subscribe()
    double.alter('prices', large.id, { product: starter.product })
    await on.current.provider.portalUrl(CUSTOMER)
    const [configuration] = double.store.list('configurations')
    const [product, ...others] = configuration!.features.subscription_update.products!
    expect(others).to.deep.equal([])
    expect(product!.prices).to.have.members([starter.id, large.id])
  })

  it('lets nobody change to a plan when none is sold', async () => {
    await on.current.subscribe()
    on.current.plans.splice(0, 2, { ...on.current.plans[0]!, isActive: false })
    await on.current.provider.portalUrl(CUSTOMER)
    const [configuration] = on.current.double.store.list('configurations')
    expect(configuration!.features.subscription_update).to.deep.include({ enabled: false, products: [] })
  })
})
