/** The clock of the local provider: what happens because time goes by. */

import { type Draft, tellPayment } from './draft.ts'
import { decide } from './money-back.ts'
import { LocalRefusal } from './ports.ts'
import type { LocalPayment, LocalSubscription } from './state.ts'
import { endPeriod, hasDueEnd, payOpen } from './subscriptions.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
/** How far the clock may be ahead. */
const MAX_OFFSET_MS = 100 * 365 * DAY_MS

/**
 * First comes what is awaited: late payments, those that are past due, and disputes. Then the clock goes on, from the end of
 * one period to that of the next. `days`: 1 to 400. Throws LocalRefusal when the clock would be 100 years ahead.
 */
export function advance(draft: Draft, days: number): void {
  const { state } = draft
  const until = draft.at + days * DAY_MS
  if (state.offsetMs + days * DAY_MS > MAX_OFFSET_MS) {
    throw new LocalRefusal('conflict', 'The clock is 100 years ahead, and goes no further', 'clock_ahead')
  }
  for (const payment of state.payments) decide(draft, payment)
  for (const payment of [...state.payments]) payAwaited(draft, payment)
  endPeriods(draft, until)
  draft.at = until
  state.offsetMs += days * DAY_MS
}

/** Periods that have ended by now: the clock goes on with the real one, too. */
export function catchUp(draft: Draft): void {
  endPeriods(draft, draft.at)
}

/** Each at its own time, the earliest first. */
function endPeriods(draft: Draft, until: number): void {
  for (let next = nextDue(draft, until); next !== undefined; next = nextDue(draft, until)) {
    draft.at = Math.max(draft.at, next.currentPeriodEnd)
    endPeriod(draft, next)
  }
}

function nextDue({ state }: Draft, until: number): LocalSubscription | undefined {
  return state.subscriptions
    .filter((each) => hasDueEnd(each) && each.currentPeriodEnd <= until)
    .reduce<LocalSubscription | undefined>(
      (first, each) => (first && first.currentPeriodEnd <= each.currentPeriodEnd ? first : each),
      undefined,
    )
}

/** Nobody takes money for a period that a cancellation ends. */
function payAwaited(draft: Draft, payment: LocalPayment): void {
  if (payment.state !== 'open') return
  const { checkouts, subscriptions } = draft.state
  const subscription = subscriptions.find((each) => each.openPaymentId === payment.paymentId)
  // Of a pack, or the difference of another plan.
  if (subscription === undefined) payAlone(draft, payment)
  else if (subscription.cancelsAtPeriodEnd) return
  else payOpen(draft, subscription)
  const checkout = checkouts.find((each) => each.paymentId === payment.paymentId)
  if (checkout !== undefined) checkout.state = 'paid'
}

function payAlone(draft: Draft, payment: LocalPayment): void {
  payment.state = 'paid'
  payment.paidAt = draft.at
  tellPayment(draft, payment)
}
