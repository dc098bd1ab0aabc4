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

/** Whether it renews when its period ends. */
export function renews(status: SubscriptionStatus): boolean {
  return status !== 'CANCELLING' && status !== 'CANCELLED'
}

/** Credits of a whole period, from those of one plan to those of a better one. */
export interface CreditRange {
  from: number
  to: number
}

/** By a change of the plan, at this time: Unix ms. */
export interface ChangedRange extends CreditRange {
  changedAt: number
}

export interface Upgrade extends CreditRange {
  /** What the period was paid for so far, in any order. */
  paid: readonly CreditRange[]
  /** Unix ms, before `periodEnd`. */
  periodStart: number
  periodEnd: number
  /** Unix ms. Outside of the period it counts as its nearer end. */
  changedAt: number
}

/**
 * Credits of a better plan for what is left of the period: the difference that was not paid before, pro rata, half up. A
 * lesser plan takes none.
 */
export function upgradeCredits({ from, to, paid, periodStart, periodEnd, changedAt }: Upgrade): number {
  const left = periodEnd - Math.min(Math.max(changedAt, periodStart), periodEnd)
  return proportion(unpaidOf({ from, to }, paid), left, periodEnd - periodStart)
}

/**
 * Of the credits of a whole period, what changes have brought that were paid before the period itself. Of credits that
 * several changes cover, the first change counts. Times are Unix ms.
 */
export function broughtBefore(
  credits: number,
  changes: readonly ChangedRange[],
  period: { periodStart: number; periodEnd: number },
): number {
  const sorted = changes.toSorted((a, b) => a.changedAt - b.changedAt)
  return sorted.reduce((brought, { from, to, changedAt }, index) => {
    const range = { from, to: Math.min(to, credits), changedAt }
    return brought + upgradeCredits({ ...range, ...period, paid: sorted.slice(0, index) })
  }, 0)
}

/** Changes may be paid in another order than they were made, so there may be gaps between what was paid. */
function unpaidOf({ from, to }: CreditRange, paid: readonly CreditRange[]): number {
  let unpaid = 0
  let at = from
  for (const each of paid.toSorted((a, b) => a.from - b.from)) {
    unpaid += Math.max(0, Math.min(each.from, to) - at)
    at = Math.max(at, each.to)
  }
  return unpaid + Math.max(0, to - at)
}
