/** Offers of the catalogue at Stripe: prices, named by their id (`price_…`) or by their lookup key. */

import type Stripe from 'stripe'
import type { CataloguePlan } from '../../billing/catalogue.ts'
import { UnusableReadingError } from '../../billing/readings.ts'
import { idOf, orMissing } from './client.ts'

/** What of a price decides whose offer it is. */
export interface PriceNames {
  id: string
  lookupKey: string | null
  /** Id of the product that it is a price of. */
  product: string | undefined
}

/** The price as it stands, active or not; undefined: there is none. */
export async function findPrice(stripe: Stripe, offerId: string): Promise<Stripe.Price | undefined> {
  if (offerId.startsWith('price_')) {
    return await orMissing(stripe.prices.retrieve(offerId, { expand: ['product', 'currency_options'] }))
  }
  const { data } = await stripe.prices.list({
    lookup_keys: [offerId],
    limit: 1,
    expand: ['data.product', 'data.currency_options'],
  })
  return data[0]
}

/** Whether it can be bought: once a cycle for a plan, once for a pack. */
export function isSold(price: Stripe.Price, buys: 'plan' | 'pack'): boolean {
  const { active, product, type } = price
  if (!active || type !== (buys === 'plan' ? 'recurring' : 'one_time')) return false
  return typeof product === 'string' || (!product.deleted && product.active)
}

/** In cents, of each currency that the price has, in upper case. */
export function amountsOf(price: Stripe.Price): Record<string, number | null> {
  const options = Object.entries(price.currency_options ?? {})
  const amounts = options.map(([currency, option]) => [currency.toUpperCase(), option.unit_amount] as const)
  return Object.fromEntries([[price.currency.toUpperCase(), price.unit_amount], ...amounts])
}

export function namesOf({ id, lookup_key, product }: Stripe.Price): PriceNames {
  return { id, lookupKey: lookup_key, product: idOf(product) }
}

/** The plan that a price is the offer of by its own names; the active one of several. */
export function planOf(plans: readonly CataloguePlan[], { id, lookupKey }: PriceNames): string | undefined {
  const fits = plans.filter(({ offerId }) => offerId !== null && (offerId === id || offerId === lookupKey))
  return (fits.find(({ isActive }) => isActive) ?? fits[0])?.planId
}

/**
 * As `planOf`. A lookup key may move to a new price, while those who bought the old one keep it: then it is the plan whose
 * offer is of the same product. Rejects with UnusableReadingError when none fits, or several do.
 */
export async function requirePlan(
  stripe: Stripe,
  plans: readonly CataloguePlan[],
  names: PriceNames,
): Promise<string> {
  const named = planOf(plans, names)
  if (named !== undefined) return named
  const offers = plans.flatMap(({ planId, offerId, isActive }) =>
    offerId === null || !isActive ? [] : [{ planId, offerId }],
  )
  const products = await Promise.all(
    offers.map(async ({ offerId }) => idOf((await findPrice(stripe, offerId))?.product)),
  )
  const fits = offers.filter((_, index) => products[index] !== undefined && products[index] === names.product)
  if (fits.length === 1) return fits[0]!.planId
  throw new UnusableReadingError(`the price ${names.id} is the offer of no plan in the catalogue`)
}
