/**
 * What the local payment provider knows: one JSON document (migration 047). Money is in cents. Times are Unix ms by the
 * provider's clock, which is the real one and `offsetMs`; only `changedAt` is by the real clock.
 *
 * Invariants: lists are ordered by age, the oldest first; a subscription that is not pending and has not ended has
 * `currentPeriodStart` before `currentPeriodEnd`; an open payment of a period is named by the `openPaymentId` of its
 * subscription; of no payment goes back more than its amount.
 */

import type { PlanChange } from '../../billing/readings.ts'
import type { Currency } from '../../domain/currency.ts'
import type { CheckoutState, DisputeOutcome, EventKind, PaymentKind } from './ports.ts'

export interface LocalState {
  /** Signs events. */
  secret: string
  /** How far the provider's clock is ahead of the real one, at least 0. */
  offsetMs: number
  checkouts: LocalCheckout[]
  subscriptions: LocalSubscription[]
  payments: LocalPayment[]
  events: LocalEvent[]
}

interface Owned {
  customerId: string
  providerCustomerId: string
  /** Real time of its last change. */
  changedAt: number
}

export interface LocalCheckout extends Owned {
  checkoutId: string
  kind: PaymentKind
  /** The plan or the pack. */
  itemId: string
  amountInCents: number
  currency: Currency
  state: CheckoutState
  /** Of the payment that it leads to, from the beginning. */
  paymentId: string
  createdAt: number
}

export interface LocalSubscription extends Owned {
  subscriptionId: string
  planId: string
  /** Of each renewal. */
  priceInCents: number
  currency: Currency
  /** It waits for its first payment. */
  isPending: boolean
  cancelsAtPeriodEnd: boolean
  /** The next renewal is not paid. */
  failsNext: boolean
  endedAt: number | null
  /** The payment that it waits for: pending, or past due. */
  openPaymentId: string | null
  /** Period `n` begins so many months after this time, on the same day or on the last one of a shorter month. */
  anchor: number
  periods: number
  currentPeriodStart: number
  currentPeriodEnd: number
  createdAt: number
}

/** `failed`: no money came, and none will. */
export type PaymentState = 'open' | 'paid' | 'failed'

export interface LocalPayment extends Owned {
  paymentId: string
  kind: PaymentKind
  /** null: of a pack, or of a checkout that failed. */
  subscriptionId: string | null
  /** null: of a renewal, or of a plan that changes. */
  checkoutId: string | null
  amountInCents: number
  currency: Currency
  state: PaymentState
  createdAt: number
  paidAt: number | null
  refundedInCents: number
  dispute: Dispute | null
  /** The period that it pays for. */
  cycle: { planId: string; periodStart: number; periodEnd: number } | null
  /** The change of plan whose difference it pays. Absent of those before there were such. */
  change?: PlanChange | null
}

/** `isDecided` and `won`: nothing is held any more. */
export interface Dispute {
  heldInCents: number
  outcome: DisputeOutcome
  isDecided: boolean
}

export interface LocalEvent {
  eventId: string
  kind: EventKind
  objectId: string
  customerId: string
  subscriptionId: string | null
  at: number
  isTold: boolean
  /** The dispute of this payment is decided once the event is told. */
  decides: string | null
}

export function emptyState(secret: string): LocalState {
  return { secret, offsetMs: 0, checkouts: [], subscriptions: [], payments: [], events: [] }
}

/** What went back, or is held by a dispute that is not won. */
export function returnedOf({ refundedInCents, dispute }: LocalPayment): number {
  const held = dispute === null || (dispute.isDecided && dispute.outcome === 'won') ? 0 : dispute.heldInCents
  return refundedInCents + held
}

export function livesOn({ isPending, endedAt }: LocalSubscription): boolean {
  return !isPending && endedAt === null
}

export function isPastDue(subscription: LocalSubscription): boolean {
  return livesOn(subscription) && subscription.openPaymentId !== null
}
