/** What is wrong between the catalogue and the offers at Stripe. */

import type Stripe from 'stripe'
import type { Catalogue, CataloguePack, CataloguePlan } from '../../billing/catalogue.ts'
import { type Currency, currencies } from '../../domain/currency.ts'
import { priceOf, tierOf } from '../../domain/pack-prices.ts'
import { amountsOf, findPrice, isSold } from './offers.ts'

type Item = {
  name: string
  buys: 'plan' | 'pack'
  offerId: string
  prices: Partial<Record<Currency, number>>
}

/** One line a fault; what is not active, or has no offer, is not looked at. */
export async function offerFaults(stripe: Stripe, catalogue: Catalogue): Promise<string[]> {
  const items = itemsOf(catalogue)
  const found = await Promise.all(items.map(({ offerId }) => findPrice(stripe, offerId)))
  return [
    ...items.flatMap((item, index) => faultsOf(item, found[index]).map((fault) => `${item.name}: ${fault}`)),
    ...sharedOffers(items, found),
  ]
}

function itemsOf({ plans, packs }: Catalogue): Item[] {
  const sold = <T extends CataloguePlan | CataloguePack>(item: T): item is T & { offerId: string } =>
    item.isActive && item.offerId !== null
  return [
    ...plans.filter(sold).map(({ planId, offerId, prices }) => ({
      name: `plan ${planId}`,
      buys: 'plan' as const,
      offerId,
      prices,
    })),
    ...packs.filter(sold).map(({ packId, offerId, credits }) => ({
      name: `pack ${packId}`,
      buys: 'pack' as const,
      offerId,
      prices: packPrices(credits, plans),
    })),
  ]
}

/** A pack is shown at the rate of a plan, in each currency that plans have. */
function packPrices(credits: number, plans: readonly CataloguePlan[]): Partial<Record<Currency, number>> {
  const priced = currencies.flatMap((currency) => {
    const tier = tierOf(credits, plans, currency)
    return tier === undefined ? [] : [[currency, priceOf(credits, tier)] as const]
  })
  return Object.fromEntries(priced)
}

function faultsOf({ offerId, buys, prices }: Item, price: Stripe.Price | undefined): string[] {
  if (price === undefined) return [`Stripe has no offer ${offerId}`]
  const wanted = buys === 'plan' ? 'recurring' : 'one_time'
  if (price.type !== wanted) return [`${offerId} is ${price.type}, not ${wanted}`]
  if (!isSold(price, buys)) return [`${offerId} or its product is not active`]
  const amounts = amountsOf(price)
  const known = currencies.filter((currency) => currency in prices || currency in amounts)
  return known.flatMap((currency) => {
    const [here, there] = [prices[currency], amounts[currency] ?? undefined]
    if (here === there) return []
    if (there === undefined) return [`${offerId} has no price in ${currency}, the catalogue has ${here}`]
    return [`${offerId} costs ${there} in ${currency}, in the catalogue ${here ?? 'it has no price'}`]
  })
}

/** Whoever pays such a price has bought one of them: it is not known which. */
function sharedOffers(items: readonly Item[], found: readonly (Stripe.Price | undefined)[]): string[] {
  return items.flatMap(({ name, buys }, index) => {
    const first = items.findIndex(
      (each, at) => each.buys === buys && found[at] !== undefined && found[at]?.id === found[index]?.id,
    )
    return first >= 0 && first < index ? [`${name}: has the offer of ${items[first]!.name}`] : []
  })
}
