/** The objects of the local provider as billing reads them, and as a person sees them. */

import type {
  InvoiceReading,
  ObjectReference,
  PackReading,
  Reading,
  SubscriptionReading,
} from '../../billing/readings.ts'
import type { SubscriptionStatus } from '../../domain/model.ts'
import type { CheckoutView, EventView, PaymentView, PaymentViewState, SubscriptionView } from './ports.ts'
import {
  isPastDue,
  type LocalCheckout,
  type LocalEvent,
  type LocalPayment,
  type LocalState,
  type LocalSubscription,
  returnedOf,
} from './state.ts'

/** undefined: there is no such object. */
export function readingOf(state: LocalState, { kind, id }: ObjectReference): Reading | undefined {
  if (kind === 'subscription') {
    const found = state.subscriptions.find((each) => each.subscriptionId === id)
    return found && subscriptionReading(found)
  }
  if (kind === 'invoice') {
    const found = state.payments.find((each) => each.paymentId === id && each.kind === 'plan')
    return found && invoiceReading(found)
  }
  const found = state.checkouts.find((each) => each.checkoutId === id && each.kind === 'pack')
  return found && packReading(state, found)
}

/** Objects that changed at this time or later, by the real clock (Unix ms). */
export function changesSince(state: LocalState, since: number): ObjectReference[] {
  const isNew = ({ changedAt }: { changedAt: number }) => changedAt >= since
  const subscriptions = state.subscriptions.filter(isNew)
  const invoices = state.payments.filter((each) => isNew(each) && each.subscriptionId !== null)
  const paidPacks = state.payments.filter((each) => isNew(each) && each.kind === 'pack')
  const packs = state.checkouts.filter((each) => isNew(each) && each.kind === 'pack' && each.state !== 'open')
  const packIds = new Set([
    ...paidPacks.map((each) => each.checkoutId!),
    ...packs.map((each) => each.checkoutId),
  ])
  return [
    ...subscriptions.map(({ subscriptionId }) => ({ kind: 'subscription' as const, id: subscriptionId })),
    ...invoices.map(({ paymentId }) => ({ kind: 'invoice' as const, id: paymentId })),
    ...[...packIds].map((id) => ({ kind: 'pack' as const, id })),
  ]
}

export function statusOf(subscription: LocalSubscription): SubscriptionStatus {
  if (subscription.endedAt !== null) return 'CANCELLED'
  if (subscription.isPending) return 'PENDING'
  if (subscription.cancelsAtPeriodEnd) return 'CANCELLING'
  return isPastDue(subscription) ? 'PAST_DUE' : 'ACTIVE'
}

export function checkoutView(checkout: LocalCheckout): CheckoutView {
  const { checkoutId, kind, itemId, customerId, amountInCents, currency, state } = checkout
  const item = kind === 'plan' ? { planId: itemId } : { packId: itemId }
  return { checkoutId, kind, ...item, customerId, amountInCents, currency, state }
}

export function paymentView(payment: LocalPayment): PaymentView {
  const { paymentId, kind, amountInCents, refundedInCents } = payment
  return { paymentId, kind, amountInCents, refundedInCents, state: paymentState(payment) }
}

export function subscriptionView(subscription: LocalSubscription): SubscriptionView {
  return { subscriptionId: subscription.subscriptionId, state: statusOf(subscription) }
}

export function eventView({ eventId, kind, customerId, subscriptionId, at }: LocalEvent): EventView {
  return { eventId, kind, customerId, ...(subscriptionId !== null && { subscriptionId }), at }
}

function paymentState(payment: LocalPayment): PaymentViewState {
  const { state, amountInCents, refundedInCents } = payment
  if (state !== 'paid') return state
  if (returnedOf(payment) > refundedInCents) return 'disputed'
  return amountInCents > 0 && refundedInCents === amountInCents ? 'refunded' : 'paid'
}

function subscriptionReading(subscription: LocalSubscription): SubscriptionReading {
  const { customerId, providerCustomerId, subscriptionId, planId } = subscription
  const { currentPeriodStart, currentPeriodEnd, createdAt } = subscription
  return {
    kind: 'subscription',
    customerId,
    providerCustomerId,
    subscriptionId,
    planId,
    status: statusOf(subscription),
    currentPeriodStart,
    currentPeriodEnd,
    createdAt,
  }
}

/** undefined: of a checkout that failed, which has no subscription. */
function invoiceReading(payment: LocalPayment): InvoiceReading | undefined {
  const { customerId, providerCustomerId, paymentId, subscriptionId, state } = payment
  if (subscriptionId === null) return undefined
  return {
    kind: 'invoice',
    customerId,
    providerCustomerId,
    invoiceId: paymentId,
    subscriptionId,
    status: state === 'failed' ? 'void' : state,
    amount: payment.amountInCents,
    paidAt: payment.paidAt,
    createdAt: payment.createdAt,
    cycle: payment.cycle && { ...payment.cycle, newMoney: null },
    changes: payment.change ? [payment.change] : [],
    returnedInCents: returnedOf(payment),
  }
}

/**
 * The local provider knows no tax: what is paid is the amount. undefined: its payment is forgotten, and with it what went
 * back.
 */
function packReading(state: LocalState, checkout: LocalCheckout): PackReading | undefined {
  const { customerId, providerCustomerId, checkoutId, itemId, amountInCents, currency, paymentId } = checkout
  const payment = state.payments.find((each) => each.paymentId === paymentId)
  if (checkout.state === 'paid' && payment === undefined) return undefined
  return {
    kind: 'pack',
    customerId,
    providerCustomerId,
    checkoutId,
    packId: itemId,
    state: checkout.state === 'pending' ? 'open' : checkout.state,
    paidInCents: amountInCents,
    currency,
    amount: amountInCents,
    returnedInCents: payment === undefined ? 0 : returnedOf(payment),
    createdAt: checkout.createdAt,
    paidAt: payment?.paidAt ?? null,
    invoiceId: paymentId,
  }
}
