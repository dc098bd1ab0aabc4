import { expect } from 'chai'
import { describe, it } from 'mocha'
import { DAY_MS } from '../support/billing-rows.ts'
import { answers, billingHarnessOfSuite, deniesRole } from './billing-harness.ts'

const LIST = '/v1/admin/credit-packs'
const checkout = (packId: string) => `${LIST}/${packId}/checkout-url`

const notFound = { error: 'Credit pack not found' }
const noSubscription = {
  error: 'Credit packs can be bought only with an active subscription',
  code: 'subscription_required',
}
const noProvider = { error: 'Payment provider is not configured' }
const noOffer = { error: 'Credit pack is not yet available for purchase' }

describe('credit packs', () => {
  const harness = billingHarnessOfSuite()

  it('are listed in BRL, smallest first, without those that are not active', async () => {
    const tier = { planId: 'basic', name: 'Basic', priceInCents: 1_000, creditsPerCycle: 100 }
    const common = { currency: 'BRL', pricePer1kCents: 10_000, tier, betterValue: null }
    await answers(harness.as('viewer').get(LIST), 200, {
      currency: 'BRL',
      currencies: ['BRL', 'USD'],
      packs: [
        { packId: 'fifty', credits: 50, priceInCents: 500, available: true, ...common },
        { packId: 'later', credits: 500, priceInCents: 5_000, available: false, ...common },
      ],
    })
  })

  it('are listed in the currency that is asked for', async () => {
    const { status, json } = await harness.as('viewer').get(`${LIST}?currency=USD`)
    expect(status).to.equal(200)
    const list = json as { currency: string; packs: { priceInCents: number; currency: string }[] }
    expect(list.currency).to.equal('USD')
    expect(list.packs.map(({ currency, priceInCents }) => [currency, priceInCents])).to.deep.equal([
      ['USD', 100],
      ['USD', 1_000],
    ])
  })

  it('are listed alike with and without a payment provider, for every role and a key of a project', async () => {
    const { json } = await harness.as('owner').get(LIST)
    await answers(harness.withoutProvider().get(LIST), 200, json)
    for (const key of ['viewer', 'member', 'admin', 'scoped'] as const) {
      await answers(harness.as(key).get(`${LIST}?customerId=${harness.customerId}`), 200, json)
    }
  })

  it('are refused in any other currency', async () => {
    for (const currency of ['EUR', 'brl', 'BRL%20', 'BRL,USD', '__proto__', 'x'.repeat(5_000)]) {
      await answers(harness.as('viewer').get(`${LIST}?currency=${currency}`), 400, {
        error: 'currency must be one of: BRL, USD',
        code: 'unsupported_currency',
      })
    }
  })

  it('are none of another customer', async () => {
    const error = 'customerId differs from the authenticated customer'
    await answers(harness.as('viewer').get(`${LIST}?customerId=other`), 403, { error })
    await answers(harness.as('owner').get(`${checkout('fifty')}?customerId=other`), 403, { error })
  })

  describe('to buy', () => {
    it('have a page at the payment provider', async () => {
      await harness.subscribe()
      for (const key of ['admin', 'owner'] as const) {
        await answers(harness.as(key).get(checkout('fifty')), 200, {
          checkoutUrl: `https://pay.example/offer-fifty?customer=${harness.customerId}`,
          packId: 'fifty',
          credits: 50,
        })
      }
      expect(harness.provider.asked[0]).to.deep.equal({
        call: 'checkoutUrl',
        buys: 'pack',
        packId: 'fifty',
        customerId: harness.customerId,
        offerId: 'offer-fifty',
      })
    })

    it('are for admins and owners', async () => {
      await harness.subscribe()
      for (const key of ['viewer', 'member'] as const) {
        await deniesRole(harness.as(key).get(checkout('fifty')), 'admin, owner')
      }
      expect(harness.provider.asked).to.deep.equal([])
    })

    it('must exist and be active', async () => {
      for (const packId of ['none', 'old', 'a%2fb', '%00', 'x'.repeat(200)]) {
        await answers(harness.as('owner').get(checkout(packId)), 404, notFound)
      }
    })

    for (const [status, usable] of [
      ['ACTIVE', true],
      ['PAST_DUE', true],
      ['CANCELLING', true],
      ['PENDING', false],
      ['CANCELLED', false],
    ] as const) {
      it(`${usable ? 'can' : 'cannot'} be bought with a subscription that is ${status}`, async () => {
        await harness.subscribe({ status })
        const answer = harness.as('owner').get(checkout('fifty'))
        if (usable) expect((await answer).status).to.equal(200)
        else await answers(answer, 403, noSubscription)
      })
    }

    it('cannot be bought once the cancelled period is over, nor without any subscription', async () => {
      await answers(harness.as('owner').get(checkout('fifty')), 403, noSubscription)
      await harness.subscribe({ status: 'CANCELLING', currentPeriodEnd: Date.now() - DAY_MS })
      await answers(harness.as('owner').get(checkout('fifty')), 403, noSubscription)
      expect(harness.provider.asked).to.deep.equal([])
    })

    it('need a provider that has the offer', async () => {
      await harness.subscribe()
      await answers(harness.withoutProvider().get(checkout('fifty')), 503, noProvider)
      await answers(harness.as('owner').get(checkout('later')), 409, noOffer)
      expect(harness.provider.asked).to.deep.equal([])
      harness.provider.unknownOffers.add('offer-fifty')
      await answers(harness.as('owner').get(checkout('fifty')), 409, noOffer)
    })

    it('wait for a provider that fails', async () => {
      await harness.subscribe()
      harness.provider.failing = true
      const answer = await harness.as('owner').get(checkout('fifty'))
      expect([answer.status, answer.json, answer.headers.get('retry-after')]).to.deep.equal([
        ...[503, { error: 'Payment provider did not agree, try again' }, '5'],
      ])
      harness.provider.failing = false
      expect((await harness.as('owner').get(checkout('fifty'))).status).to.equal(200)
    })

    it('are checked in order: pack, subscription, provider, offer', async () => {
      const bare = harness.withoutProvider()
      await answers(bare.get(checkout('none')), 404, notFound)
      await answers(bare.get(checkout('later')), 403, noSubscription)
      await harness.subscribe()
      await answers(bare.get(checkout('later')), 503, noProvider)
      await answers(bare.get(checkout('old')), 404, notFound)
    })
  })
})
