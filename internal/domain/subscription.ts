/**
 * The states of a subscription (docs/reference/api.md, "Subscriptions"). The payment provider moves it into
 * PENDING, ACTIVE, PAST_DUE and CANCELLED by what it tells; its customer into CANCELLING and CANCELLED.
 *
 * Invariants: CANCELLED is the end, a subscription that comes back has another identifier; nothing but the end
 * takes CANCELLING back, so a renewal on its way when the customer cancelled does not undo the cancellation; the
 * period only moves on.
 */

import type { Subscription, SubscriptionStatus } from './model.ts'

/** A subscription with the provider's time of the newest event that was applied, Unix ms. */
export interface KnownSubscription extends Subscription {
  toldAt: number
}

interface Told {
  subscriptionId: string
  /** The provider's time of what it tells, Unix ms. */
  at: number
}

interface Period {
  /** Unix ms, `periodStart` before `periodEnd`. */
  periodStart: number
  periodEnd: number
}

interface Contract {
  customerId: string
  planId: string
  autoRenew: boolean
}

export type SubscriptionEvent =
  | ({ kind: 'subscription_pending' | 'subscription_activated' } & Told & Period & Contract)
  | ({ kind: 'subscription_renewed' } & Told & Period)
  | ({ kind: 'subscription_past_due' | 'subscription_cancelled' } & Told)

export interface SubscriptionChange {
  readonly subscription: KnownSubscription
  /** The cycle that was paid for: its credits are due, unless they were granted when it was told before. */
  readonly cycle: Cycle | null
}

export interface Cycle {
  readonly planId: string
  /** Unix ms; names the cycle of a subscription. */
  readonly periodStart: number
}

/** Active: it can still be cancelled for the end of its period. */
export function isActive(status: SubscriptionStatus): boolean {
  return status === 'ACTIVE' || status === 'PAST_DUE'
}

/** Whether packs can be bought: active, or cancelled for the end of a period that lasts. `now`: Unix ms. */
export function isUsable({ status, currentPeriodEnd }: Subscription, now: number): boolean {
  return isActive(status) || (status === 'CANCELLING' && now < currentPeriodEnd)
}

/** What an event makes of a subscription; undefined: nothing changes. The first event must be one that starts it. */
export function changeBy(
  event: SubscriptionEvent,
  known: KnownSubscription | undefined,
): SubscriptionChange | undefined {
  if (known === undefined) return isStart(event) ? started(event) : undefined
  if (known.status === 'CANCELLED' || event.kind === 'subscription_pending') return undefined
  const cycle = cycleOf(event, known.planId)
  const movesOn = cycle && (known.status === 'PENDING' || cycle.periodStart > known.currentPeriodStart)
  const status = isNews(event, known) ? statusAfter(event.kind, known.status) : known.status
  const subscription = {
    ...known,
    ...(movesOn && { ...periodOf(event), planId: cycle.planId }),
    status,
    autoRenew: status === 'CANCELLED' ? false : known.autoRenew,
    toldAt: Math.max(known.toldAt, event.at),
  }
  return { subscription, cycle }
}

export function isStart(event: SubscriptionEvent): event is SubscriptionEvent & Period & Contract {
  return event.kind === 'subscription_pending' || event.kind === 'subscription_activated'
}

function started(event: SubscriptionEvent & Period & Contract): SubscriptionChange {
  const { subscriptionId, customerId, planId, autoRenew, at } = event
  const status = event.kind === 'subscription_activated' ? 'ACTIVE' : 'PENDING'
  return {
    subscription: {
      subscriptionId,
      customerId,
      planId,
      status,
      ...periodOf(event),
      autoRenew,
      toldAt: at,
    },
    cycle: cycleOf(event, planId),
  }
}

/** `planId`: the plan so far. */
function cycleOf(event: SubscriptionEvent, planId: string): Cycle | null {
  if (event.kind !== 'subscription_activated' && event.kind !== 'subscription_renewed') return null
  const { periodStart } = event
  return { planId: isStart(event) ? event.planId : planId, periodStart }
}

/** What newer events have overtaken tells nothing about the present; an end and a first payment always do. */
function isNews(event: SubscriptionEvent, known: KnownSubscription): boolean {
  return event.kind === 'subscription_cancelled' || known.status === 'PENDING' || event.at >= known.toldAt
}

function statusAfter(kind: SubscriptionEvent['kind'], status: SubscriptionStatus): SubscriptionStatus {
  if (kind === 'subscription_cancelled') return 'CANCELLED'
  if (status === 'CANCELLING') return status
  if (kind === 'subscription_past_due') return status === 'ACTIVE' ? 'PAST_DUE' : status
  return 'ACTIVE'
}

function periodOf(event: SubscriptionEvent): Pick<Subscription, 'currentPeriodStart' | 'currentPeriodEnd'> {
  if (!('periodStart' in event)) throw new Error(`${event.kind} tells no period`)
  return { currentPeriodStart: event.periodStart, currentPeriodEnd: event.periodEnd }
}
