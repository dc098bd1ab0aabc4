/** What the adapter does when Stripe fails or is slow (docs/architecture/billing.md, "A payment provider"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import Stripe from 'stripe'

import type { PaymentProvider } from '../../../internal/billing/ports.ts'
import { STRIPE_API_VERSION } from '../../../internal/payments/stripe/client.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { CUSTOMER, rejection, shop } from './shop.ts'

/** The port's promise, ms. */
const PROMISE_MS = 10_000

describe('the connection to Stripe', () => {
  const on = shop()

  /** Every operation of the port that talks to Stripe. */
  function operations(
    provider: PaymentProvider,
    subscriptionId: string,
  ): Record<string, () => Promise<unknown>> {
    const offer = { customerId: CUSTOMER, offerId: 'starter-monthly' }
    return {
      checkoutUrl: () => provider.checkoutUrl({ ...offer, buys: 'plan', planId: 'starter' }),
      portalUrl: () => provider.portalUrl(CUSTOMER),
      cancelAtPeriodEnd: () => provider.cancelAtPeriodEnd({ subscriptionId, reason: null }),
      cancelNow: () => provider.cancelNow({ subscriptionId, reason: null }),
      cancelAndRefund: () => provider.cancelAndRefund(subscriptionId),
      'read a subscription': () => provider.read({ kind: 'subscription', id: subscriptionId }),
      'read an invoice': () => provider.read({ kind: 'invoice', id: 'in_1' }),
      'read a pack': () => provider.read({ kind: 'pack', id: 'cs_1' }),
    }
  }

  it('speaks the version of the installed package, whatever the account of Stripe does', async () => {
    expect(STRIPE_API_VERSION).to.equal(Stripe.API_VERSION)
    await on.current.subscribe()
    const versions = on.current.double.api.asked.map(({ headers }) => headers['stripe-version'])
    expect(new Set(versions)).to.deep.equal(new Set([STRIPE_API_VERSION]))
  })

  it('makes nothing without a key of its own', async () => {
    await on.current.subscribe()
    const { provider, double } = on.current
    await provider.portalUrl(CUSTOMER)
    await provider.cancelAndRefund(double.store.list('subscriptions')[0]!.id)
    const made = double.api.asked.filter(
      ({ method, path }) => method === 'POST' && !path.includes('portal/sessions'),
    )
    for (const { path, headers } of made) {
      expect(headers['idempotency-key'], path).to.match(/^penstock-[a-z]+-[0-9a-f]{40}$/)
    }
    expect(made.map(({ path }) => path)).to.include.members(['/v1/customers', '/v1/refunds'])
  })

  it('tries once more, and then every operation rejects', async () => {
    const subscriptionId = await on.current.subscribe()
    on.current.double.api.failing = 503
    for (const [name, run] of Object.entries(operations(on.current.provider, subscriptionId))) {
      const before = on.current.double.requests()
      expect(await rejection(run()), name).to.include({ statusCode: 503 })
      expect(on.current.double.requests() - before, name).to.be.oneOf([2, 4, 6])
    }
  })

  it('tries no second time what Stripe refuses', async () => {
    const subscriptionId = await on.current.subscribe()
    on.current.double.api.failing = 401
    const before = on.current.double.requests()
    const { provider } = on.current
    await rejection(provider.cancelNow({ subscriptionId, reason: null }))
    expect(on.current.double.requests() - before).to.equal(1)
  })

  it('is given up before the promise of the port is broken, by every operation', async () => {
    const subscriptionId = await on.current.subscribe()
    on.current.double.api.slowMs = 60_000
    const waits: number[] = []
    const real = systemClock()
    // Minutes pass in no time: what is told is how long it would have waited.
    const clock = {
      ...real,
      after: (ms: number, task: () => void) => {
        waits.push(ms)
        return real.after(1, task)
      },
    }
    const hasty = on.current.open({ clock })
    for (const [name, run] of Object.entries(operations(hasty, subscriptionId))) {
      expect(await rejection(run()), name).to.include({ name: 'DeadlineError' })
    }
    expect(waits).to.have.length(8)
    for (const wait of waits) expect(wait).to.be.within(8_000, PROMISE_MS - 500)
  })

  it('gives up a call that is not answered within 4 s, and makes it once more', async () => {
    on.current.double.api.slowMs = 60_000
    const begun = performance.now()
    const error = await rejection(on.current.provider.read({ kind: 'pack', id: 'cs_1' }))
    expect(error).to.have.property('type', 'StripeConnectionError')
    expect(performance.now() - begun).to.be.above(7_900)
    expect(on.current.double.requests()).to.equal(2)
  })
})
