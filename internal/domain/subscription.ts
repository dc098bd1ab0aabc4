/**
 * The states of a subscription (docs/architecture/billing.md, "States"). It is what the payment provider says that it
 * is, and its customer's cancellation counts once the provider has agreed.
 *
 * Invariant: CANCELLED is the end. A customer who comes back has a subscription with another identifier.
 */

import type { Subscription, SubscriptionStatus } from './model.ts'
import { proportion } from './proportion.ts'

/** It can still be cancelled for the end of its period. */
export function isActive(status: SubscriptionStatus): boolean {
  return status === 'ACTIVE' || status === 'PAST_DUE'
}

/**
 * Whether packs can be bought, and no second subscription: active, or cancelled for the end of a period that lasts.
 * `now`: Unix ms.
 */
export function isUsable({ status, currentPeriodEnd }: Subscription, now: number): boolean {
  return isActive(status) || (status === 'CANCELLING' && now < currentPeriodEnd)
}

/** Whether what its plan brings is the customer's: paid, also when it ends with its period. */
export function isPaid(status: SubscriptionStatus): boolean {
  return status === 'ACTIVE' || status === 'CANCELLING'
}

/** Whether it renews when its period ends. */
export function renews(status: SubscriptionStatus): boolean {
  return status !== 'CANCELLING' && status !== 'CANCELLED'
}

export interface Upgrade {
  /** Credits of a whole period, of the best plan that the period was paid for so far. */
  from: number
  /** Credits of a whole period of the present plan. */
  to: number
  /** Unix ms, before `periodEnd`. */
  periodStart: number
  periodEnd: number
  /** Unix ms. Outside of the period it counts as its nearer end. */
  changedAt: number
}

/** Credits of a better plan for what is left of the period: the difference, pro rata, half up. A lesser plan takes none. */
export function upgradeCredits({ from, to, periodStart, periodEnd, changedAt }: Upgrade): number {
  if (to <= from) return 0
  const left = periodEnd - Math.min(Math.max(changedAt, periodStart), periodEnd)
  return proportion(to - from, left, periodEnd - periodStart)
}
