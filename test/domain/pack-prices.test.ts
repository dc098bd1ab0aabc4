import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { type Currency, currencies } from '../../internal/domain/currency.ts'
import type { Plan } from '../../internal/domain/model.ts'
import {
  creditsForPayment,
  listPacks,
  type PackOffer,
  priceOf,
  tierOf,
} from '../../internal/domain/pack-prices.ts'

function plan(planId: string, creditsPerCycle: number, prices: Plan['prices'], isActive = true): Plan {
  const [currency = 'BRL', priceInCents = 0] = (Object.entries(prices)[0] ?? []) as [Currency?, number?]
  return { planId, name: `Plan ${planId}`, priceInCents, currency, prices, creditsPerCycle, isActive }
}

function pack(packId: string, credits: number, offered = false): PackOffer {
  return { packId, credits, offered }
}

const small = plan('small', 1_000, { BRL: 1_000, USD: 200 })
const middle = plan('middle', 10_000, { BRL: 5_000, USD: 1_000 })
const large = plan('large', 100_000, { BRL: 20_000 })
const plans = [large, small, middle]

describe('prices of credit packs', () => {
  describe('the plan whose rate applies', () => {
    const cases: [credits: number, currency: Currency, planId: string, priceInCents: number][] = [
      // Smaller than every plan: the smallest one's rate.
      [1, 'BRL', 'small', 1],
      [999, 'BRL', 'small', 999],
      [1_000, 'BRL', 'small', 1_000],
      [9_999, 'BRL', 'small', 9_999],
      [10_000, 'BRL', 'middle', 5_000],
      [99_999, 'BRL', 'middle', 50_000],
      [100_000, 'BRL', 'large', 20_000],
      [1_000_000, 'BRL', 'large', 200_000],
      // The large plan has no price in USD.
      [1_000_000, 'USD', 'middle', 100_000],
      [500, 'USD', 'small', 100],
    ]
    for (const [credits, currency, planId, priceInCents] of cases) {
      it(`for ${credits} credits in ${currency} is ${planId}: ${priceInCents} cents`, () => {
        const tier = tierOf(credits, plans, currency)
        expect(tier?.planId).to.equal(planId)
        expect(priceOf(credits, tier!)).to.equal(priceInCents)
      })
    }

    it('is no plan that is not active', () => {
      const sold = [small, plan('middle', 10_000, { BRL: 1 }, false)]
      expect(tierOf(10_000, sold, 'BRL')?.planId).to.equal('small')
    })

    it('is the cheaper one of two with the same credits, in either order', () => {
      const dear = plan('dear', 1_000, { BRL: 900 })
      const cheap = plan('cheap', 1_000, { BRL: 800 })
      for (const pair of [
        [dear, cheap],
        [cheap, dear],
      ]) {
        for (const credits of [10, 1_000, 5_000]) {
          expect(tierOf(credits, pair, 'BRL')?.planId).to.equal('cheap')
        }
      }
    })

    it('is none without a price in the currency', () => {
      expect(tierOf(100, [large], 'USD')).to.equal(undefined)
      expect(tierOf(100, [], 'BRL')).to.equal(undefined)
    })
  })

  describe('rounding', () => {
    const at = (priceInCents: number, creditsPerCycle: number) => ({
      planId: 'p',
      name: 'P',
      priceInCents,
      creditsPerCycle,
    })
    const cases: [credits: number, price: number, perCycle: number, cents: number][] = [
      // Half a cent goes up.
      [1, 5, 2, 3],
      [1, 1, 2, 1],
      [3, 1, 2, 2],
      [1, 7, 3, 2],
      [1, 8, 3, 3],
      // Never for nothing.
      [1, 1, 1_000_000, 1],
      // Beyond what a double holds exactly in between.
      [999_999_999_999, 999_999_937, 999_999_999_999, 999_999_937],
    ]
    for (const [credits, price, perCycle, cents] of cases) {
      it(`of ${credits} × ${price} ÷ ${perCycle} gives ${cents}`, () => {
        expect(priceOf(credits, at(price, perCycle))).to.equal(cents)
      })
    }
  })

  describe('the list', () => {
    it('shows each pack with its rate, smallest first', () => {
      const list = listPacks([pack('b', 10_000, true), pack('a', 2_000)], plans, 'BRL')
      expect(list).to.deep.equal({
        currency: 'BRL',
        currencies: ['BRL', 'USD'],
        packs: [
          {
            packId: 'a',
            credits: 2_000,
            priceInCents: 2_000,
            currency: 'BRL',
            pricePer1kCents: 1_000,
            tier: { planId: 'small', name: 'Plan small', priceInCents: 1_000, creditsPerCycle: 1_000 },
            available: false,
            betterValue: null,
          },
          {
            packId: 'b',
            credits: 10_000,
            priceInCents: 5_000,
            currency: 'BRL',
            pricePer1kCents: 500,
            tier: { planId: 'middle', name: 'Plan middle', priceInCents: 5_000, creditsPerCycle: 10_000 },
            available: true,
            betterValue: null,
          },
        ],
      })
    })

    it('says a price of 1,000 credits that is no whole cent', () => {
      const list = listPacks([pack('a', 300)], [plan('p', 3_000, { BRL: 1_000 })], 'BRL')
      expect(list.packs[0]).to.include({ priceInCents: 100 })
      expect(list.packs[0]?.pricePer1kCents).to.be.closeTo(333.3333, 0.0001)
    })

    it('is priced in the first currency that there is, where the wanted one has no price', () => {
      const list = listPacks([pack('a', 1)], [large], 'USD')
      expect([list.currency, list.currencies]).to.deep.equal(['BRL', ['BRL']])
      expect(list.packs[0]).to.include({ currency: 'BRL' })
      const dollars = [plan('p', 10, { USD: 5 })]
      expect(listPacks([pack('a', 1)], dollars, 'BRL')).to.include({ currency: 'USD' })
    })

    it('is empty while no plan is sold', () => {
      const inactive = [plan('p', 10, { BRL: 5 }, false)]
      expect(listPacks([pack('a', 1)], inactive, 'USD')).to.deep.equal({
        currency: 'USD',
        currencies: [],
        packs: [],
      })
    })

    it('points at a bigger pack that costs the same or less', () => {
      const tiers = [plan('s', 100, { BRL: 1_000 }), plan('l', 1_000, { BRL: 5_000 })]
      const offers = [pack('p100', 100), pack('p500', 500), pack('p900', 900), pack('p1000', 1_000)]
      const { packs } = listPacks([...offers, pack('p1800', 1_800)], tiers, 'BRL')
      const better = Object.fromEntries(packs.map((each) => [each.packId, each.betterValue]))
      expect(better).to.deep.equal({
        // 1,000 cents; nothing bigger costs as little.
        p100: null,
        // 5,000 cents, as much as 1,000 credits cost.
        p500: { packId: 'p1000', credits: 1_000, priceInCents: 5_000 },
        // 9,000 cents: both cost the same a credit, so the larger one.
        p900: { packId: 'p1800', credits: 1_800, priceInCents: 9_000 },
        p1000: null,
        p1800: null,
      })
    })

    it('points at the most credits a cent of several', () => {
      const tiers = [plan('s', 1, { BRL: 100 }), plan('m', 100, { BRL: 100 }), plan('l', 1_000, { BRL: 900 })]
      const { packs } = listPacks([pack('a', 99), pack('b', 1_500), pack('c', 500)], tiers, 'BRL')
      expect(packs[0]?.betterValue).to.include({ packId: 'b' })
    })
  })

  describe('what a payment brings', () => {
    const cases: [credits: number, price: number, paid: number, granted: number][] = [
      [1_000, 500, 500, 1_000],
      [1_000, 500, 250, 500],
      [1_000, 500, 0, 0],
      [1_000, 500, 1_000, 2_000],
      [1_000, 300, 100, 333],
      [1_000, 300, 200, 667],
      [1, 2, 1, 1],
    ]
    for (const [credits, price, paid, granted] of cases) {
      it(`${paid} of ${price} cents for ${credits} credits: ${granted}`, () => {
        expect(creditsForPayment(credits, price, paid)).to.equal(granted)
      })
    }
  })

  describe('of any catalogue', () => {
    const cents = fc.integer({ min: 1, max: 1_000_000 })
    const anyPlan = fc.record({
      creditsPerCycle: fc.integer({ min: 1, max: 1_000_000 }),
      BRL: fc.option(cents),
      USD: fc.option(cents),
      isActive: fc.boolean(),
    })
    const plansOf = fc.array(anyPlan, { maxLength: 6 }).map((made) =>
      made.map(({ creditsPerCycle, BRL, USD, isActive }, index) => {
        const prices = { ...(BRL !== null && { BRL }), ...(USD !== null && { USD }) }
        return plan(`plan-${index}`, creditsPerCycle, prices, isActive)
      }),
    )
    const packsOf = fc
      .array(fc.integer({ min: 1, max: 2_000_000 }), { maxLength: 6 })
      .map((made) => made.map((credits, index) => pack(`pack-${index}`, credits)))

    it('follows the rules', () => {
      fc.assert(
        fc.property(plansOf, packsOf, fc.constantFrom(...currencies), (some, packs, wanted) => {
          const list = listPacks(packs, some, wanted)
          const sold = some.filter((each) => each.isActive && each.prices[list.currency] !== undefined)
          expect(list.packs).to.have.length(sold.length > 0 ? packs.length : 0)
          expect(list.currencies.includes(wanted)).to.equal(
            some.some((each) => each.isActive && each.prices[wanted] !== undefined),
          )
          expect(list.currency).to.equal(
            list.currencies.includes(wanted) ? wanted : (list.currencies[0] ?? wanted),
          )
          const least = Math.min(...sold.map((each) => each.creditsPerCycle))
          for (const { credits, priceInCents, tier, pricePer1kCents, betterValue } of list.packs) {
            const fitting = sold.filter((each) => each.creditsPerCycle <= Math.max(credits, least))
            const largest = Math.max(...fitting.map((each) => each.creditsPerCycle))
            const cheapest = Math.min(
              ...sold
                .filter((each) => each.creditsPerCycle === largest)
                .map((each) => each.prices[list.currency]!),
            )
            expect(tier).to.include({ creditsPerCycle: largest, priceInCents: cheapest })
            const exact = (credits * cheapest) / largest
            expect(priceInCents).to.be.at.least(1)
            expect(Math.abs(priceInCents - Math.max(1, exact))).to.be.at.most(0.5 + 1e-6)
            expect(pricePer1kCents).to.be.closeTo((1000 * cheapest) / largest, 1e-6)
            const better = list.packs.filter((it) => it.credits > credits && it.priceInCents <= priceInCents)
            expect(betterValue === null).to.equal(better.length === 0)
            if (betterValue === null) continue
            expect(better.map(({ packId }) => packId)).to.include(betterValue.packId)
            const most = Math.max(...better.map((it) => it.credits / it.priceInCents))
            expect(betterValue.credits / betterValue.priceInCents).to.equal(most)
          }
        }),
      )
    })
  })
})
