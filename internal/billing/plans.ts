/** Plans and where to subscribe (docs/reference/api.md, "Plans"). Refusals are thrown as ServiceError. */

import { ServiceError } from '../domain/errors.ts'
import type { Plan } from '../domain/model.ts'
import type { Principal } from '../domain/principal.ts'
import { isUsable } from '../domain/subscription.ts'
import type { Clock } from '../runtime/clock.ts'
import type { CataloguePlan } from './catalogue.ts'
import type { CatalogueStore, PaymentProvider, SubscriptionStore } from './ports.ts'
import { askProvider, isOffered } from './provider.ts'

export interface Plans {
  /** All of them, also those that are not active: `isActive` says which are sold. Smallest first. */
  list(): Promise<Plan[]>
  /**
   * 404 unknown, 400 not active, 409 while the customer has a subscription, 503 without a provider, 404 without a
   * checkout (docs/architecture/protocol.md, "Admin requests").
   */
  checkoutUrl(
    principal: Principal,
    planId: string,
  ): Promise<{ checkoutUrl: string; planId: string; planName: string }>
}

export interface PlansOptions {
  catalogue: CatalogueStore
  subscriptions: SubscriptionStore
  clock: Clock
  /** undefined: not configured. */
  provider: PaymentProvider | undefined
}

export function createPlans({ catalogue, subscriptions, clock, provider }: PlansOptions): Plans {
  return {
    async list() {
      return (await catalogue.plans()).map(withoutOffer)
    },
    async checkoutUrl({ customerId }, planId) {
      const plan = (await catalogue.plans()).find((each) => each.planId === planId)
      if (plan === undefined) throw new ServiceError('planNotFound')
      if (!plan.isActive) throw new ServiceError('planInactive')
      const current = await subscriptions.current(customerId)
      if (current !== undefined && isUsable(current.subscription, clock.now())) {
        throw new ServiceError('subscriptionExists')
      }
      const checkoutUrl = await askProvider(provider, async (it) =>
        isOffered(plan, it)
          ? it.checkoutUrl({ buys: 'plan', planId, customerId, offerId: plan.offerId })
          : undefined,
      )
      if (checkoutUrl === undefined) throw new ServiceError('planWithoutCheckout')
      return { checkoutUrl, planId, planName: plan.name }
    },
  }
}

/** The offer is between whoever runs the installation and the provider. */
function withoutOffer({ offerId: _, ...plan }: CataloguePlan): Plan {
  return plan
}
