/** Checkouts of the local provider: what a customer may buy, and what he chose. */

import type { Currency } from '../../domain/currency.ts'
import { checkoutOf, type Draft, tellCheckout, tellPayment } from './draft.ts'
import { type CheckoutOutcome, LocalRefusal, type PaymentKind } from './ports.ts'
import type { LocalCheckout, LocalPayment, PaymentState } from './state.ts'
import { subscribe } from './subscriptions.ts'

/** What is sold in a checkout. */
export interface Item {
  kind: PaymentKind
  itemId: string
  /** At least 1. */
  priceInCents: number
  currency: Currency
}

/** Open checkouts of all customers. */
export const MAX_OPEN = 1_000

/**
 * A checkout of the item. The customer's open one of the same item at the same price is answered again; one at another
 * price expires. When there are too many the oldest one expires.
 */
export function openCheckout(
  draft: Draft,
  customer: { customerId: string; providerCustomerId: string },
  item: Item,
): LocalCheckout {
  const { customerId, providerCustomerId } = customer
  const { kind, itemId, priceInCents, currency } = item
  const before = openOnes(draft).find(
    (each) => each.customerId === customerId && each.kind === kind && each.itemId === itemId,
  )
  if (before !== undefined) {
    if (before.amountInCents === priceInCents && before.currency === currency) return before
    expire(draft, before)
  }
  const [oldest, ...others] = openOnes(draft)
  if (oldest !== undefined && others.length >= MAX_OPEN - 1) expire(draft, oldest)
  const checkout: LocalCheckout = {
    checkoutId: draft.newId('cs'),
    kind,
    itemId,
    customerId,
    providerCustomerId,
    amountInCents: priceInCents,
    currency,
    state: 'open',
    paymentId: draft.newId('in'),
    createdAt: draft.at,
    changedAt: draft.now,
  }
  draft.state.checkouts.push(checkout)
  return checkout
}

/**
 * What the customer chose. Throws LocalRefusal when he has chosen before, or there is no such checkout. `amountInCents`:
 * what he pays, undefined: the price.
 */
export function chooseOutcome(
  draft: Draft,
  checkoutId: string,
  choice: { outcome: CheckoutOutcome; amountInCents?: number },
): LocalCheckout {
  const checkout = checkoutOf(draft.state, checkoutId)
  if (checkout.state !== 'open') {
    throw new LocalRefusal('conflict', `Checkout is ${checkout.state}`, 'checkout_closed')
  }
  const { outcome } = choice
  if (outcome === 'abandons') {
    expire(draft, checkout)
    return checkout
  }
  const priceInCents = checkout.amountInCents
  const { amountInCents = priceInCents } = choice
  const paid = outcome === 'pays'
  checkout.amountInCents = amountInCents
  checkout.changedAt = draft.now
  checkout.state = paid ? 'paid' : outcome === 'fails' ? 'failed' : 'pending'
  if (checkout.kind === 'plan' && outcome !== 'fails') {
    subscribe(draft, checkout, { priceInCents, amountInCents, paid })
  } else {
    addPayment(draft, checkout, paid ? 'paid' : outcome === 'fails' ? 'failed' : 'open')
  }
  return checkout
}

function expire(draft: Draft, checkout: LocalCheckout): void {
  checkout.state = 'expired'
  tellCheckout(draft, checkout)
}

function openOnes({ state }: Draft): LocalCheckout[] {
  return state.checkouts.filter((each) => each.state === 'open')
}

/** Of a pack, or of a plan whose checkout failed. */
function addPayment(draft: Draft, checkout: LocalCheckout, state: PaymentState): void {
  const { paymentId, kind, customerId, providerCustomerId, checkoutId, amountInCents, currency } = checkout
  const payment: LocalPayment = {
    paymentId,
    kind,
    customerId,
    providerCustomerId,
    subscriptionId: null,
    checkoutId,
    amountInCents,
    currency,
    state,
    createdAt: draft.at,
    paidAt: state === 'paid' ? draft.at : null,
    refundedInCents: 0,
    dispute: null,
    cycle: null,
    change: null,
    changedAt: draft.now,
  }
  draft.state.payments.push(payment)
  tellPayment(draft, payment)
}
