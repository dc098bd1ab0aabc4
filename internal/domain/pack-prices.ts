/**
 * What a credit pack costs (docs/reference/api.md, "Credit packs"): a pack has no price of its own, it is sold at
 * the rate a credit of a plan. Plans that are not active set no rate.
 */

import { type Currency, currencies } from './currency.ts'
import type { CreditPack, Plan } from './model.ts'
import { proportion } from './proportion.ts'

export interface PackOffer {
  packId: string
  /** At least 1. */
  credits: number
  /** Whether the payment provider has an offer for it. */
  offered: boolean
}

export type Tier = CreditPack['tier']

/** Of each pack, smallest first. `currency` is `wanted`, or the first of `currencies` where no plan has a price in it. */
export interface PackList {
  currency: Currency
  /** In which packs can be priced; empty, as `packs` is, without any active plan. */
  currencies: Currency[]
  packs: CreditPack[]
}

export function listPacks(packs: readonly PackOffer[], plans: readonly Plan[], wanted: Currency): PackList {
  const priced = pricedCurrencies(plans)
  const currency = priced.includes(wanted) ? wanted : (priced[0] ?? wanted)
  const listed = [...packs].sort((a, b) => a.credits - b.credits || compareText(a.packId, b.packId))
  const sold = listed.flatMap((pack) => {
    const tier = tierOf(pack.credits, plans, currency)
    return tier === undefined ? [] : [packAt(tier, pack, currency)]
  })
  return {
    currency,
    currencies: priced,
    packs: sold.map((pack) => ({ ...pack, betterValue: betterValueOf(pack, sold) })),
  }
}

/**
 * The largest active plan of at most so many credits; for a pack smaller than every plan the smallest one
 * (docs/reference/api.md, "Credit packs"). Of two plans with the same credits the cheaper one counts. undefined: no
 * plan has a price in the currency.
 */
export function tierOf(credits: number, plans: readonly Plan[], currency: Currency): Tier | undefined {
  const tiers = tiersIn(plans, currency)
  return tiers.findLast((tier) => tier.creditsPerCycle <= credits) ?? cheapestOfSmallest(tiers)
}

/** Cents, rounded half up, at least 1. Exact for all safe integers. */
export function priceOf(credits: number, tier: Tier): number {
  return Math.max(1, proportion(credits, tier.priceInCents, tier.creditsPerCycle))
}

/**
 * Credits for a payment that may differ from the price, for example by a coupon: in proportion, rounded half
 * up; 0 when nothing was paid. `priceInCents` at least 1, `paidInCents` at least 0.
 */
export function creditsForPayment(credits: number, priceInCents: number, paidInCents: number): number {
  return proportion(credits, paidInCents, priceInCents)
}

function pricedCurrencies(plans: readonly Plan[]): Currency[] {
  return currencies.filter((currency) => tiersIn(plans, currency).length > 0)
}

/** By credits; of the same credits the dearest first, so that the last one is the cheapest. */
function tiersIn(plans: readonly Plan[], currency: Currency): Tier[] {
  return plans
    .flatMap(({ planId, name, prices, creditsPerCycle, isActive }) => {
      const priceInCents = prices[currency]
      return isActive && priceInCents !== undefined ? [{ planId, name, priceInCents, creditsPerCycle }] : []
    })
    .sort(
      (a, b) =>
        a.creditsPerCycle - b.creditsPerCycle ||
        b.priceInCents - a.priceInCents ||
        compareText(b.planId, a.planId),
    )
}

function cheapestOfSmallest(tiers: readonly Tier[]): Tier | undefined {
  return tiers.findLast((tier) => tier.creditsPerCycle === tiers[0]?.creditsPerCycle)
}

function packAt(tier: Tier, { packId, credits, offered }: PackOffer, currency: Currency): CreditPack {
  return {
    packId,
    credits,
    priceInCents: priceOf(credits, tier),
    currency,
    pricePer1kCents: (tier.priceInCents * 1000) / tier.creditsPerCycle,
    tier,
    available: offered,
    betterValue: null,
  }
}

/** Of several the one with the most credits a cent, then the larger one. */
function betterValueOf(pack: CreditPack, packs: readonly CreditPack[]): CreditPack['betterValue'] {
  const better = packs
    .filter((other) => other.credits > pack.credits && other.priceInCents <= pack.priceInCents)
    .sort((a, b) => b.credits / b.priceInCents - a.credits / a.priceInCents || b.credits - a.credits)[0]
  if (better === undefined) return null
  const { packId, credits, priceInCents } = better
  return { packId, credits, priceInCents }
}

/** By code units: the same on every machine. */
function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
