/** The webhook endpoint at Stripe, and offers beside the catalogue (docs/guide/billing.md). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import Stripe from 'stripe'

import { STRIPE_API_VERSION } from '../../../internal/payments/stripe/client.ts'
import { endpointFaults, registerEndpoint } from '../../../internal/payments/stripe/endpoint.ts'
import { eventTypes } from '../../../internal/payments/stripe/events.ts'
import { offerFaults } from '../../../internal/payments/stripe/offer-faults.ts'
import { KEY, shop } from './shop.ts'

const BASE = 'https://penstock.example'
const URL_THERE = `${BASE}/v1/payments/stripe`
const EVENTS = [
  ...['created', 'updated', 'deleted', 'paused', 'resumed'].map((name) => `customer.subscription.${name}`),
  ...['paid', 'finalized', 'payment_failed', 'voided', 'marked_uncollectible'].map(
    (name) => `invoice.${name}`,
  ),
  ...['completed', 'async_payment_succeeded', 'async_payment_failed', 'expired'].map(
    (name) => `checkout.session.${name}`,
  ),
  ...['charge.refunded', 'refund.created', 'refund.updated', 'refund.failed'],
  ...['created', 'updated', 'closed', 'funds_withdrawn', 'funds_reinstated'].map(
    (name) => `charge.dispute.${name}`,
  ),
]

describe("an installation's side at Stripe", () => {
  const on = shop()
  const api = () =>
    new Stripe(KEY, { host: '127.0.0.1', port: new URL(on.current.double.origin).port, protocol: 'http' })
  const endpoints = () => on.current.double.store.list('endpoints')

  describe('the webhook endpoint', () => {
    it('is made with exactly the events that count, in the pinned version, and shows its secret once', async () => {
      const made = await registerEndpoint(api(), BASE)
      expect(made.secret).to.match(/^whsec_/)
      expect(made).to.deep.include({ url: URL_THERE, outdated: [] })
      const [endpoint, ...others] = endpoints()
      expect(others).to.deep.equal([])
      expect(endpoint).to.deep.include({ api_version: STRIPE_API_VERSION, enabled_events: EVENTS })
      expect(eventTypes).to.deep.equal(EVENTS)
      for (const base of [BASE, `${BASE}/`, URL_THERE]) {
        expect(await registerEndpoint(api(), base)).to.deep.equal({ ...made, secret: undefined })
      }
      expect(endpoints()).to.have.length(1)
      expect(await endpointFaults(api())).to.deep.equal([])
    })

    it('that was changed by hand is put right', async () => {
      const { id } = await registerEndpoint(api(), BASE)
      on.current.double.alter('endpoints', id, {
        status: 'disabled',
        enabled_events: ['invoice.paid', 'invoice.upcoming'],
      })
      const faults = await endpointFaults(api())
      expect(faults.join('\n'))
        .to.include('it is disabled')
        .and.include('customer.subscription.created')
        .and.include('it also sends invoice.upcoming')
      await registerEndpoint(api(), BASE)
      expect(await endpointFaults(api())).to.deep.equal([])
    })

    it('of another version stays beside the new one until its secret is no longer used', async () => {
      const { id: old } = await registerEndpoint(api(), BASE)
      on.current.double.alter('endpoints', old, { api_version: '2024-06-20' })
      const made = await registerEndpoint(api(), BASE)
      expect(made.id).to.not.equal(old)
      expect(made.outdated).to.deep.equal([old])
      expect((await endpointFaults(api())).join()).to.include(
        `${old} (${URL_THERE}): its version is 2024-06-20`,
      )
    })

    it('of somebody else is left alone', async () => {
      await registerEndpoint(api(), BASE)
      on.current.double.alter('endpoints', endpoints()[0]!.id, { url: 'https://other.example/hooks' })
      expect((await registerEndpoint(api(), BASE)).secret).to.be.a('string')
      expect(await endpointFaults(api())).to.deep.equal([])
      expect(endpoints()).to.have.length(2)
    })

    it('is missed', async () => {
      expect((await endpointFaults(api())).join()).to.include('no webhook endpoint')
    })
  })

  describe('offers', () => {
    /** What is wrong with them, and the price that a pack of the shop should have. */
    const faults = () => offerFaults(api(), { plans: on.current.plans, packs: on.current.packs })

    it('that are as the catalogue says are not told', async () => {
      const { double, large, pack } = on.current
      double.alter('prices', large.id, amounts({ brl: 4_900, usd: 990 }))
      double.alter('prices', pack.id, amounts({ brl: 980, usd: 198 }))
      expect(await faults()).to.deep.equal([])
    })

    it('of another price are told, by currency', async () => {
      expect(await faults()).to.deep.equal([
        `plan large: ${on.current.large.id} costs 9900 in BRL, in the catalogue 4900`,
        `plan large: ${on.current.large.id} costs 1990 in USD, in the catalogue 990`,
        `pack small-pack: ${on.current.pack.id} costs 1000 in BRL, in the catalogue 980`,
        `pack small-pack: ${on.current.pack.id} costs 200 in USD, in the catalogue 198`,
      ])
    })

    it('without one of the currencies, or with one more, are told', async () => {
      const { double, large } = on.current
      on.current.packs.length = 0
      double.alter('prices', large.id, amounts({ brl: 4_900 }))
      expect(await faults()).to.deep.equal([
        `plan large: ${large.id} has no price in USD, the catalogue has 990`,
      ])
      double.alter('prices', large.id, amounts({ brl: 4_900, usd: 990 }))
      on.current.plans[1]!.prices = { BRL: 4_900 }
      expect(await faults()).to.deep.equal([
        `plan large: ${large.id} costs 990 in USD, in the catalogue it has no price`,
      ])
    })

    it('that are not there, not sold, of the wrong kind or shared are told', async () => {
      const { double, plans, packs, starter, large, pack } = on.current
      packs.length = 0
      plans[0]!.offerId = 'no-such-key'
      plans[1]!.offerId = pack.id
      expect(await faults()).to.deep.equal([
        'plan starter: Stripe has no offer no-such-key',
        `plan large: ${pack.id} is one_time, not recurring`,
      ])
      plans[0]!.offerId = 'starter-monthly'
      plans[1]!.offerId = starter.id
      expect(await faults()).to.deep.equal(['plan large: has the offer of plan starter'])
      plans[1]!.offerId = large.id
      double.alter('prices', large.id, { active: false })
      expect(await faults()).to.deep.equal([`plan large: ${large.id} or its product is not active`])
    })

    it('of what is not on sale are not looked at', async () => {
      const { plans, packs } = on.current
      plans[0]!.offerId = null
      plans[1]!.isActive = false
      packs[0]!.isActive = false
      expect(await faults()).to.deep.equal([])
      expect(on.current.double.requests('GET /v1/prices')).to.equal(0)
    })
  })
})

/** Of a price: in cents, by currency in lower case. */
function amounts(byCurrency: Record<string, number>): Partial<Stripe.Price> {
  const [[currency, unit_amount] = ['brl', 0]] = Object.entries(byCurrency)
  const options = Object.entries(byCurrency).map(([name, amount]) => [
    name,
    {
      custom_unit_amount: null,
      tax_behavior: 'unspecified',
      unit_amount: amount,
      unit_amount_decimal: `${amount}`,
    },
  ])
  const currency_options = Object.fromEntries(options)
  return { currency, unit_amount, unit_amount_decimal: `${unit_amount}` as never, currency_options }
}
