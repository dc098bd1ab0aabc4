/**
 * A customer's own subscription (docs/reference/api.md, "Subscriptions"). Refusals are thrown as ServiceError.
 *
 * A cancellation is the provider's yes first, our row second. Whatever dies in between has changed nothing
 * here: the subscription is still active, cancelling it again asks the provider again, which agrees to what it
 * has agreed to, and its event or the sweep brings the state as well.
 */

import { ServiceError } from '../domain/errors.ts'
import type { Plan, Subscription, SubscriptionStatus } from '../domain/model.ts'
import type { Principal } from '../domain/principal.ts'
import { isActive } from '../domain/subscription.ts'
import type { Cancellation, PaymentProvider, SubscriptionStore } from './ports.ts'
import { askProvider } from './provider.ts'

export interface CurrentSubscription {
  subscription: Subscription | null
  plan: Plan | null
}

export interface Subscriptions {
  /** Both null when there was never one (docs/reference/api.md, "Subscriptions"). */
  read(principal: Principal): Promise<CurrentSubscription>
  /**
   * 403 for a project-scoped key, 404 without an active subscription (a pending one is none), 409 when it is
   * cancelling or cancelled already, 503 without a provider or its yes. `endsAt`: Unix ms.
   */
  cancelAtPeriodEnd(
    principal: Principal,
    request: CancelRequest,
  ): Promise<{ message: string; endsAt: number; status: SubscriptionStatus }>
  /** The same, except that one that is cancelling already can still be ended now. */
  cancelNow(principal: Principal, request: CancelRequest): Promise<void>
  /** Where he manages what he has bought. 403 as above, 503 without a provider, 404 when it does not know him. */
  portalUrl(principal: Principal): Promise<{ portalUrl: string }>
}

export interface CancelRequest {
  reason?: string
}

export interface SubscriptionsOptions {
  subscriptions: SubscriptionStore
  /** undefined: not configured. */
  provider: PaymentProvider | undefined
}

interface End {
  from: readonly SubscriptionStatus[]
  to: 'CANCELLING' | 'CANCELLED'
  ask: (provider: PaymentProvider, cancellation: Cancellation) => Promise<void>
}

const AT_PERIOD_END: End = {
  from: ['ACTIVE', 'PAST_DUE'],
  to: 'CANCELLING',
  ask: (provider, cancellation) => provider.cancelAtPeriodEnd(cancellation),
}

const NOW: End = {
  from: ['ACTIVE', 'PAST_DUE', 'CANCELLING'],
  to: 'CANCELLED',
  ask: (provider, cancellation) => provider.cancelNow(cancellation),
}

export function createSubscriptions({ subscriptions, provider }: SubscriptionsOptions): Subscriptions {
  async function cancel(principal: Principal, request: CancelRequest, end: End): Promise<Subscription> {
    refuseScoped(principal, 'cancel')
    const { subscriptionId } = await cancellable(principal, end)
    const reason = request.reason ?? null
    await askProvider(provider, (it) => end.ask(it, { subscriptionId, reason }))
    const { from, to } = end
    const { changed, subscription } = await subscriptions.end(subscriptionId, { from, to, reason })
    // Unchanged: another request, or an event, was faster. The state that it left says what to answer.
    return changed ? subscription : refuse(subscription.status)
  }

  async function cancellable({ customerId }: Principal, { from }: End): Promise<Subscription> {
    const subscription = (await subscriptions.current(customerId))?.subscription
    return subscription && from.includes(subscription.status) ? subscription : refuse(subscription?.status)
  }

  return {
    async read({ customerId }) {
      return (await subscriptions.current(customerId)) ?? { subscription: null, plan: null }
    },
    async cancelAtPeriodEnd(principal, request) {
      const { currentPeriodEnd: endsAt, status } = await cancel(principal, request, AT_PERIOD_END)
      const message = `Subscription is cancelled and stays usable until ${new Date(endsAt).toISOString()}`
      return { message, endsAt, status }
    },
    async cancelNow(principal, request) {
      await cancel(principal, request, NOW)
    },
    async portalUrl(principal) {
      refuseScoped(principal, 'manage')
      const portalUrl = await askProvider(provider, (it) => it.portalUrl(principal.customerId))
      if (portalUrl === undefined) throw new ServiceError('portalNotFound')
      return { portalUrl }
    },
  }
}

function refuseScoped({ projectIds }: Principal, verb: string): void {
  if (projectIds === undefined) return
  throw new ServiceError('projectForeign', { error: `A project-scoped key cannot ${verb} the subscription` })
}

/** Of a subscription that cannot be cancelled. */
function refuse(status: SubscriptionStatus | undefined): never {
  if (status === 'CANCELLING') throw new ServiceError('subscriptionCancelling')
  if (status === 'CANCELLED') throw new ServiceError('subscriptionCancelled')
  if (status !== undefined && isActive(status)) throw new Error(`an active subscription cannot be ${status}`)
  throw new ServiceError('subscriptionNotFound')
}
