/** The life of a subscription at the local provider. Its periods are calendar months (`months.ts`). */

import { type Draft, paymentOf, tellPayment, tellSubscription } from './draft.ts'
import { monthsAfter } from './months.ts'
import { type ChangeOutcome, LocalRefusal } from './ports.ts'
import { isPastDue, type LocalCheckout, type LocalPayment, type LocalSubscription, livesOn } from './state.ts'

/** A plan as it is sold in the currency of a subscription. */
export interface PricedPlan {
  planId: string
  priceInCents: number
}

/** What a checkout of a plan leads to. Without `paid` the money comes later. */
export function subscribe(
  draft: Draft,
  checkout: LocalCheckout,
  first: { priceInCents: number; amountInCents: number; paid: boolean },
): void {
  const { at, now, state } = draft
  const { customerId, providerCustomerId, currency, itemId, paymentId, checkoutId } = checkout
  const subscription: LocalSubscription = {
    subscriptionId: draft.newId('sub'),
    customerId,
    providerCustomerId,
    planId: itemId,
    priceInCents: first.priceInCents,
    currency,
    isPending: true,
    cancelsAtPeriodEnd: false,
    failsNext: false,
    endedAt: null,
    openPaymentId: paymentId,
    anchor: at,
    periods: 1,
    currentPeriodStart: at,
    currentPeriodEnd: monthsAfter(at, 1),
    createdAt: at,
    changedAt: now,
  }
  state.subscriptions.push(subscription)
  const { amountInCents } = first
  const payment = addPayment(draft, subscription, { paymentId, checkoutId, amountInCents, cycle: true })
  if (first.paid) payOpen(draft, subscription)
  else {
    tellSubscription(draft, subscription)
    tellPayment(draft, payment)
  }
}

/** The money of its open payment has come. The first period begins with it, others have begun. */
export function payOpen(draft: Draft, subscription: LocalSubscription): void {
  const payment = paymentOf(draft.state, subscription.openPaymentId!)
  if (subscription.isPending) {
    subscription.anchor = draft.at
    subscription.currentPeriodStart = draft.at
    subscription.currentPeriodEnd = monthsAfter(draft.at, 1)
    payment.cycle = cycleOf(subscription)
  }
  subscription.isPending = false
  subscription.openPaymentId = null
  payment.state = 'paid'
  payment.paidAt = draft.at
  tellSubscription(draft, subscription)
  tellPayment(draft, payment)
}

/** Whether its period ends with something to do, at `currentPeriodEnd`. A past-due one waits for its payment. */
export function hasDueEnd(subscription: LocalSubscription): boolean {
  return livesOn(subscription) && (subscription.cancelsAtPeriodEnd || !isPastDue(subscription))
}

/** The end of a period: the next one begins, or the subscription ends. */
export function endPeriod(draft: Draft, subscription: LocalSubscription): void {
  if (subscription.cancelsAtPeriodEnd) {
    endSubscription(draft, subscription)
    return
  }
  subscription.currentPeriodStart = subscription.currentPeriodEnd
  subscription.currentPeriodEnd = monthsAfter(subscription.anchor, ++subscription.periods)
  const payment = addPayment(draft, subscription, {
    paymentId: draft.newId('in'),
    checkoutId: null,
    amountInCents: subscription.priceInCents,
    cycle: true,
  })
  subscription.openPaymentId = payment.paymentId
  if (!subscription.failsNext) {
    payOpen(draft, subscription)
    return
  }
  subscription.failsNext = false
  tellSubscription(draft, subscription)
  tellPayment(draft, payment)
}

/** Nothing happens to one that has ended, or ends with its period already. One that was never paid ends at once. */
export function cancelAtPeriodEnd(draft: Draft, subscription: LocalSubscription): void {
  if (subscription.endedAt !== null || subscription.cancelsAtPeriodEnd) return
  if (subscription.isPending) {
    endSubscription(draft, subscription)
    return
  }
  subscription.cancelsAtPeriodEnd = true
  tellSubscription(draft, subscription)
}

/** The end, now. Its open payments fail. Nothing happens to one that has ended. */
export function endSubscription(draft: Draft, subscription: LocalSubscription): void {
  if (subscription.endedAt !== null) return
  subscription.endedAt = draft.at
  subscription.openPaymentId = null
  tellSubscription(draft, subscription)
  for (const payment of draft.state.payments) {
    if (payment.subscriptionId === subscription.subscriptionId && payment.state === 'open')
      fail(draft, payment)
  }
}

function fail(draft: Draft, payment: LocalPayment): void {
  payment.state = 'failed'
  for (const checkout of draft.state.checkouts) {
    if (checkout.paymentId === payment.paymentId) checkout.state = 'failed'
  }
  tellPayment(draft, payment)
}

/** Takes a cancellation for the end of the period back, and pays what is past due. Throws LocalRefusal. */
export function resume(draft: Draft, subscription: LocalSubscription): void {
  requireAlive(subscription)
  if (!subscription.cancelsAtPeriodEnd && !isPastDue(subscription)) {
    throw new LocalRefusal('conflict', 'Subscription is neither cancelled nor past due', 'not_resumable')
  }
  subscription.cancelsAtPeriodEnd = false
  if (isPastDue(subscription)) payOpen(draft, subscription)
  else tellSubscription(draft, subscription)
}

/** The next renewal will not be paid. Nothing is told: nobody knows yet. Throws LocalRefusal. */
export function failNext(draft: Draft, subscription: LocalSubscription): void {
  requireAlive(subscription)
  subscription.failsNext = true
  subscription.changedAt = draft.now
}

/**
 * Another plan from now on. What the rest of the period costs more is paid as `outcome` says; of a cheaper plan that is 0,
 * and nothing goes back. Throws LocalRefusal.
 */
export function changePlan(
  draft: Draft,
  subscription: LocalSubscription,
  plan: PricedPlan,
  outcome: ChangeOutcome = 'pays',
): void {
  requireAlive(subscription)
  if (isPastDue(subscription)) {
    throw new LocalRefusal(
      'conflict',
      'Subscription is past due: its payment comes first',
      'subscription_past_due',
    )
  }
  if (subscription.planId === plan.planId) {
    throw new LocalRefusal('conflict', 'Subscription has this plan', 'same_plan')
  }
  const { currentPeriodStart, currentPeriodEnd } = subscription
  const left = (currentPeriodEnd - draft.at) / (currentPeriodEnd - currentPeriodStart)
  const amountInCents = Math.max(0, Math.round((plan.priceInCents - subscription.priceInCents) * left))
  const fromPlanId = subscription.planId
  subscription.planId = plan.planId
  subscription.priceInCents = plan.priceInCents
  const payment = addPayment(draft, subscription, {
    paymentId: draft.newId('in'),
    checkoutId: null,
    amountInCents,
    cycle: false,
  })
  payment.change = { fromPlanId, planId: plan.planId, changedAt: draft.at, periodEnd: currentPeriodEnd }
  payment.state = outcome === 'pays' ? 'paid' : outcome === 'fails' ? 'failed' : 'open'
  payment.paidAt = outcome === 'pays' ? draft.at : null
  tellSubscription(draft, subscription)
  tellPayment(draft, payment)
}

function requireAlive(subscription: LocalSubscription): void {
  if (subscription.endedAt !== null) {
    throw new LocalRefusal('conflict', 'Subscription has ended', 'subscription_ended')
  }
  if (subscription.isPending) {
    throw new LocalRefusal('conflict', 'Subscription waits for its first payment', 'subscription_pending')
  }
}

/** An open payment of the subscription. `cycle`: for the period that runs. */
function addPayment(
  { state, at, now }: Draft,
  subscription: LocalSubscription,
  of: { paymentId: string; checkoutId: string | null; amountInCents: number; cycle: boolean },
): LocalPayment {
  const { subscriptionId, customerId, providerCustomerId, currency } = subscription
  const payment: LocalPayment = {
    paymentId: of.paymentId,
    kind: 'plan',
    customerId,
    providerCustomerId,
    subscriptionId,
    checkoutId: of.checkoutId,
    amountInCents: of.amountInCents,
    currency,
    state: 'open',
    createdAt: at,
    paidAt: null,
    refundedInCents: 0,
    dispute: null,
    cycle: of.cycle ? cycleOf(subscription) : null,
    change: null,
    changedAt: now,
  }
  state.payments.push(payment)
  return payment
}

function cycleOf({ planId, currentPeriodStart, currentPeriodEnd }: LocalSubscription) {
  return { planId, periodStart: currentPeriodStart, periodEnd: currentPeriodEnd }
}
