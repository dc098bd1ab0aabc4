import { expect } from 'chai'
import { describe, it } from 'mocha'
import { DAY_MS } from '../support/billing-rows.ts'
import { answers, deniesRole, tillOfSuite } from './till.ts'

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
  const till = tillOfSuite()

  it('are listed in BRL, smallest first, without those that are not active', async () => {
    const tier = { planId: 'basic', name: 'Basic', priceInCents: 1_000, creditsPerCycle: 100 }
    const common = { currency: 'BRL', pricePer1kCents: 10_000, tier, betterValue: null }
    await answers(till.as('viewer').get(LIST), 200, {
      currency: 'BRL',
      currencies: ['BRL', 'USD'],
      packs: [
        { packId: 'fifty', credits: 50, priceInCents: 500, available: true, ...common },
        { packId: 'later', credits: 500, priceInCents: 5_000, available: false, ...common },
      ],
    })
  })

  it('are listed in the currency that is asked for', async () => {
    const { status, json } = await till.as('viewer').get(`${LIST}?currency=USD`)
    expect(status).to.equal(200)
    const list = json as { currency: string; packs: { priceInCents: number; currency: string }[] }
    expect(list.currency).to.equal('USD')
    expect(list.packs.map(({ currency, priceInCents }) => [currency, priceInCents])).to.deep.equal([
      ['USD', 100],
      ['USD', 1_000],
    ])
  })

  it('are listed alike with and without a payment provider, for every role and a key of a project', async () => {
    const { json } = await till.as('owner').get(LIST)
    await answers(till.withoutProvider().get(LIST), 200, json)
    for (const key of ['viewer', 'member', 'admin', 'scoped'] as const) {
      await answers(till.as(key).get(`${LIST}?customerId=${till.customerId}`), 200, json)
    }
  })

  it('are refused in any other currency', async () => {
    for (const currency of ['EUR', 'brl', 'BRL%20', 'BRL,USD', '__proto__', 'x'.repeat(5_000)]) {
      await answers(till.as('viewer').get(`${LIST}?currency=${currency}`), 400, {
        error: 'currency must be one of: BRL, USD',
        code: 'unsupported_currency',
      })
    }
  })

  it('are none of another customer', async () => {
    const error = 'customerId differs from the authenticated customer'
    await answers(till.as('viewer').get(`${LIST}?customerId=other`), 403, { error })
    await answers(till.as('owner').get(`${checkout('fifty')}?customerId=other`), 403, { error })
  })

  describe('to buy', () => {
    it('have a page at the payment provider', async () => {
      await till.subscribe()
      for (const key of ['admin', 'owner'] as const) {
        await answers(till.as(key).get(checkout('fifty')), 200, {
          checkoutUrl: `https://pay.example/offer-fifty?customer=${till.customerId}`,
          packId: 'fifty',
          credits: 50,
        })
      }
      expect(till.provider.asked[0]).to.deep.equal({
        ...{ call: 'checkoutUrl', buys: 'pack', packId: 'fifty' },
        ...{ customerId: till.customerId, offerId: 'offer-fifty' },
      })
    })

    it('are for admins and owners', async () => {
      await till.subscribe()
      for (const key of ['viewer', 'member'] as const) {
        await deniesRole(till.as(key).get(checkout('fifty')), 'admin, owner')
      }
      expect(till.provider.asked).to.deep.equal([])
    })

    it('must exist and be active', async () => {
      for (const packId of ['none', 'old', 'a%2fb', '%00', 'x'.repeat(200)]) {
        await answers(till.as('owner').get(checkout(packId)), 404, notFound)
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
        await till.subscribe({ status })
        const answer = till.as('owner').get(checkout('fifty'))
        if (usable) expect((await answer).status).to.equal(200)
        else await answers(answer, 403, noSubscription)
      })
    }

    it('cannot be bought once the cancelled period is over, nor without any subscription', async () => {
      await answers(till.as('owner').get(checkout('fifty')), 403, noSubscription)
      await till.subscribe({ status: 'CANCELLING', currentPeriodEnd: Date.now() - DAY_MS })
      await answers(till.as('owner').get(checkout('fifty')), 403, noSubscription)
      expect(till.provider.asked).to.deep.equal([])
    })

    it('need a provider that has the offer', async () => {
      await till.subscribe()
      await answers(till.withoutProvider().get(checkout('fifty')), 503, noProvider)
      await answers(till.as('owner').get(checkout('later')), 409, noOffer)
      expect(till.provider.asked).to.deep.equal([])
      till.provider.unknownOffers.add('offer-fifty')
      await answers(till.as('owner').get(checkout('fifty')), 409, noOffer)
    })

    it('wait for a provider that fails', async () => {
      await till.subscribe()
      till.provider.failing = true
      const answer = await till.as('owner').get(checkout('fifty'))
      expect([answer.status, answer.json, answer.headers.get('retry-after')]).to.deep.equal([
        ...[503, { error: 'Payment provider did not agree, try again' }, '5'],
      ])
      till.provider.failing = false
      expect((await till.as('owner').get(checkout('fifty'))).status).to.equal(200)
    })

    it('are checked in order: pack, subscription, provider, offer', async () => {
      const bare = till.withoutProvider()
      await answers(bare.get(checkout('none')), 404, notFound)
      await answers(bare.get(checkout('later')), 403, noSubscription)
      await till.subscribe()
      await answers(bare.get(checkout('later')), 503, noProvider)
      await answers(bare.get(checkout('old')), 404, notFound)
    })
  })
})
