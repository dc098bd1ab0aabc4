/** What plans and packs cost at the local provider: in the first of `currencies` that has a price. */

import type { CatalogueStore, Checkout } from '../../billing/ports.ts'
import { currencies, DEFAULT_CURRENCY } from '../../domain/currency.ts'
import { listPacks } from '../../domain/pack-prices.ts'
import type { Item } from './checkouts.ts'
import { LocalRefusal } from './ports.ts'
import type { LocalSubscription } from './state.ts'
import type { PricedPlan } from './subscriptions.ts'

export type LocalCatalogue = Pick<CatalogueStore, 'plans' | 'packs'>

/** undefined: it is not on sale. */
export function itemOf(catalogue: LocalCatalogue, checkout: Checkout): Promise<Item | undefined> {
  return checkout.buys === 'plan'
    ? planItem(catalogue, checkout.planId)
    : packItem(catalogue, checkout.packId)
}

/** A plan that a subscription can have instead of its own. Throws LocalRefusal. */
export async function otherPlan(
  catalogue: LocalCatalogue,
  { currency }: LocalSubscription,
  planId: string,
): Promise<PricedPlan> {
  const plan = (await catalogue.plans()).find((each) => each.planId === planId && each.isActive)
  if (plan === undefined) throw new LocalRefusal('invalid', 'planId is no plan that is sold')
  const priceInCents = plan.prices[currency]
  if (priceInCents === undefined) throw new LocalRefusal('invalid', `planId has no price in ${currency}`)
  return { planId, priceInCents }
}

async function planItem(catalogue: LocalCatalogue, planId: string): Promise<Item | undefined> {
  const plan = (await catalogue.plans()).find((each) => each.planId === planId && each.isActive)
  const currency = currencies.find((each) => plan?.prices[each] !== undefined)
  if (plan === undefined || currency === undefined) return undefined
  return { kind: 'plan', itemId: planId, priceInCents: plan.prices[currency]!, currency }
}

async function packItem(catalogue: LocalCatalogue, packId: string): Promise<Item | undefined> {
  const [packs, plans] = await Promise.all([catalogue.packs(), catalogue.plans()])
  const offers = packs.filter((each) => each.isActive).map((each) => ({ ...each, offered: true }))
  const pack = listPacks(offers, plans, DEFAULT_CURRENCY).packs.find((each) => each.packId === packId)
  if (pack === undefined) return undefined
  return { kind: 'pack', itemId: packId, priceInCents: pack.priceInCents, currency: pack.currency }
}
