/** Credit packs (docs/reference/api.md, "Credit packs"). Refusals are thrown as ServiceError. */

import { currencies, isCurrency } from '../domain/currency.ts'
import { ServiceError } from '../domain/errors.ts'
import { listPacks, type PackList } from '../domain/pack-prices.ts'
import type { Principal } from '../domain/principal.ts'
import { isUsable } from '../domain/subscription.ts'
import type { Clock } from '../runtime/clock.ts'
import type { CatalogueStore, PaymentProvider, SubscriptionStore } from './ports.ts'
import { askProvider, isOffered } from './provider.ts'

export interface CreditPacks {
  /** Those that are active. 400 `unsupported_currency` for anything but BRL and USD. */
  list(currency: string): Promise<PackList>
  /**
   * In this order (docs/architecture/protocol.md, "Admin requests"): 404 unknown or not active, 403
   * `subscription_required`, 503 without a provider, 409 without an offer. CANCELLING counts as a subscription until
   * its period ends.
   */
  checkoutUrl(
    principal: Principal,
    packId: string,
  ): Promise<{ checkoutUrl: string; packId: string; credits: number }>
}

export interface CreditPacksOptions {
  catalogue: CatalogueStore
  subscriptions: SubscriptionStore
  /** undefined: not configured. */
  provider: PaymentProvider | undefined
  clock: Clock
}

export function createCreditPacks(options: CreditPacksOptions): CreditPacks {
  const { catalogue, subscriptions, provider, clock } = options
  return {
    async list(currency) {
      if (!isCurrency(currency)) {
        const error = `currency must be one of: ${currencies.join(', ')}`
        throw new ServiceError('currencyUnsupported', { error })
      }
      const [packs, plans] = await Promise.all([catalogue.packs(), catalogue.plans()])
      const active = packs.filter((pack) => pack.isActive)
      const offers = active.map((pack) => ({ ...pack, offered: isOffered(pack, provider) }))
      return listPacks(offers, plans, currency)
    },
    async checkoutUrl({ customerId }, packId) {
      const pack = (await catalogue.packs()).find((each) => each.packId === packId)
      if (!pack?.isActive) throw new ServiceError('packNotFound')
      const current = await subscriptions.current(customerId)
      if (current === undefined || !isUsable(current.subscription, clock.now())) {
        throw new ServiceError('subscriptionRequired')
      }
      const checkoutUrl = await askProvider(provider, async (it) =>
        isOffered(pack, it)
          ? it.checkoutUrl({ buys: 'pack', packId, customerId, offerId: pack.offerId })
          : undefined,
      )
      if (checkoutUrl === undefined) throw new ServiceError('packUnavailable')
      return { checkoutUrl, packId, credits: pack.credits }
    },
  }
}
