import { expect } from 'chai'
import { describe, it } from 'mocha'
import { answers, billingHarnessOfSuite, deniesRole } from './billing-harness.ts'

const LIST = '/v1/admin/plans'
const checkout = (planId: string) => `/v1/admin/subscription/checkout-url?planId=${planId}`

const noProvider = { error: 'Payment provider is not configured' }

describe('plans', () => {
  const harness = billingHarnessOfSuite()

  it('are listed smallest first, also those that are not sold any more', async () => {
    const bare = { planId: 'bare', name: 'Plan', prices: { BRL: 9_000 }, creditsPerCycle: 1_000 }
    const gone = { planId: 'gone', name: 'Plan', prices: { BRL: 1_000 }, creditsPerCycle: 2_000 }
    const legacy = { priceInCents: 1_000, currency: 'BRL' }
    const plans = [
      { ...harness.plan, ...legacy },
      { ...bare, ...legacy, isActive: true },
      { ...gone, ...legacy, isActive: false },
    ]
    for (const key of ['viewer', 'member', 'admin', 'owner', 'scoped'] as const) {
      await answers(harness.as(key).get(LIST), 200, plans)
    }
    await answers(
      harness.withoutProvider('viewer').get(`${LIST}?customerId=${harness.customerId}`),
      200,
      plans,
    )
    await answers(harness.as('viewer').get(`${LIST}?customerId=other`), 403, {
      error: 'customerId differs from the authenticated customer',
    })
  })

  describe('to subscribe to', () => {
    it('have a page at the payment provider', async () => {
      for (const key of ['admin', 'owner'] as const) {
        await answers(harness.as(key).get(checkout('basic')), 200, {
          checkoutUrl: `https://pay.example/offer-basic?customer=${harness.customerId}`,
          planId: 'basic',
          planName: 'Basic',
        })
      }
      expect(harness.provider.asked[0]).to.deep.equal({
        call: 'checkoutUrl',
        buys: 'plan',
        planId: 'basic',
        customerId: harness.customerId,
        offerId: 'offer-basic',
      })
    })

    it('are for admins and owners', async () => {
      for (const key of ['viewer', 'member'] as const) {
        await deniesRole(harness.as(key).get(checkout('basic')), 'admin, owner')
      }
    })

    it('must be named', async () => {
      for (const path of ['/v1/admin/subscription/checkout-url', checkout('a%2fb'), checkout('..')]) {
        const { status, json } = await harness.as('owner').get(path)
        expect(status, path).to.equal(400)
        expect((json as { error: string }).error).to.match(/^planId /)
      }
      const twice = await harness.as('owner').get(`${checkout('basic')}&planId=bare`)
      expect([twice.status, (twice.json as { error: string }).error]).to.deep.equal([
        ...[400, 'Query parameter planId must be given once'],
      ])
    })

    it('are checked in order: known, active, provider, checkout', async () => {
      const bare = harness.withoutProvider()
      await answers(bare.get(checkout('none')), 404, { error: 'Plan not found' })
      await answers(bare.get(checkout('gone')), 400, { error: 'Plan is not active' })
      await answers(bare.get(checkout('bare')), 503, noProvider)
      await answers(bare.get(checkout('basic')), 503, noProvider)
      await answers(harness.as('owner').get(checkout('gone')), 400, { error: 'Plan is not active' })
      await answers(harness.as('owner').get(checkout('bare')), 404, { error: 'Plan has no checkout URL' })
      expect(harness.provider.asked).to.deep.equal([])
      harness.provider.unknownOffers.add('offer-basic')
      await answers(harness.as('owner').get(checkout('basic')), 404, { error: 'Plan has no checkout URL' })
    })

    for (const status of ['ACTIVE', 'PAST_DUE', 'CANCELLING'] as const) {
      it(`are none while a subscription is ${status}`, async () => {
        await harness.subscribe({ status })
        const refused = { error: 'Account already has a subscription', code: 'subscription_exists' }
        await answers(harness.as('owner').get(checkout('basic')), 409, refused)
        // Before the provider: it is a state of ours.
        await answers(harness.withoutProvider().get(checkout('basic')), 409, refused)
        await answers(harness.as('owner').get(checkout('gone')), 400, { error: 'Plan is not active' })
        expect(harness.provider.asked).to.deep.equal([])
      })
    }

    it('are there again for whoever has none that lives', async () => {
      const past = { currentPeriodStart: Date.now() - 2_000, currentPeriodEnd: Date.now() - 1_000 }
      await harness.subscribe({ status: 'CANCELLED' })
      await harness.subscribe({ status: 'PENDING' })
      expect((await harness.as('owner').get(checkout('basic'))).status).to.equal(200)
      await harness.subscribe({ status: 'CANCELLING', ...past })
      expect((await harness.as('owner').get(checkout('basic'))).status).to.equal(200)
    })

    it('wait for a provider that fails', async () => {
      harness.provider.failing = true
      await answers(harness.as('owner').get(checkout('basic')), 503, {
        error: 'Payment provider did not agree, try again',
      })
    })
  })
})
