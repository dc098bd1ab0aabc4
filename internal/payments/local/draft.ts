/**
 * A change of the document under way. `changed` runs a change on a copy, so whatever it throws leaves the document as it
 * was.
 */

import type { EventKind } from './ports.ts'
import { LocalRefusal } from './ports.ts'
import type { LocalCheckout, LocalPayment, LocalState, LocalSubscription } from './state.ts'

/** What a change needs of the outside. */
export interface Surroundings {
  /** Real time, Unix ms. */
  now: number
  /** An identifier that nothing else has, with this prefix. */
  newId: (prefix: string) => string
}

export interface Draft extends Surroundings {
  state: LocalState
  /** The provider's clock, Unix ms; an advance moves it on. */
  at: number
}

/** Events that are kept. */
export const MAX_EVENTS = 1_000
/** Kept of each kind of object, besides those that are open. */
export const MAX_CLOSED = 2_000

/** The document after `change`, and what that answers. */
export function changed<T>(
  state: LocalState,
  surroundings: Surroundings,
  change: (draft: Draft) => T,
): { document: LocalState; result: T } {
  const document = structuredClone(state)
  const { now, newId } = surroundings
  const result = change({ state: document, now, newId, at: now + document.offsetMs })
  forget(document)
  return { document, result }
}

/** Marks the subscription as changed, and adds its event. */
export function tellSubscription(draft: Draft, subscription: LocalSubscription): void {
  subscription.changedAt = draft.now
  const { subscriptionId, customerId } = subscription
  tell(draft, 'subscription.changed', { objectId: subscriptionId, customerId, subscriptionId })
}

/** As `tellSubscription`. `decides`: its dispute is decided once the event is told. A failed checkout of a plan has no object. */
export function tellPayment(draft: Draft, payment: LocalPayment, decides = false): void {
  payment.changedAt = draft.now
  const { paymentId, kind, customerId, subscriptionId, checkoutId } = payment
  const dispute = decides ? paymentId : null
  if (kind === 'pack') tell(draft, 'pack.changed', { objectId: checkoutId!, customerId, dispute })
  else if (subscriptionId !== null) {
    tell(draft, 'invoice.changed', { objectId: paymentId, customerId, subscriptionId, dispute })
  }
}

/** Of a pack that ended without a payment. */
export function tellCheckout(draft: Draft, checkout: LocalCheckout): void {
  checkout.changedAt = draft.now
  const { checkoutId, customerId, kind } = checkout
  if (kind === 'pack') tell(draft, 'pack.changed', { objectId: checkoutId, customerId })
}

function tell(
  { state, at, newId }: Draft,
  kind: EventKind,
  about: { objectId: string; customerId: string; subscriptionId?: string; dispute?: string | null },
): void {
  const { objectId, customerId, subscriptionId = null, dispute = null } = about
  const eventId = newId('evt')
  state.events.push({
    eventId,
    kind,
    objectId,
    customerId,
    subscriptionId,
    at,
    isTold: false,
    decides: dispute,
  })
}

/** Throws LocalRefusal. */
export function checkoutOf({ checkouts }: LocalState, checkoutId: string): LocalCheckout {
  return known(
    checkouts.find((each) => each.checkoutId === checkoutId),
    'Checkout',
  )
}

/** Throws LocalRefusal. */
export function subscriptionOf({ subscriptions }: LocalState, subscriptionId: string): LocalSubscription {
  return known(
    subscriptions.find((each) => each.subscriptionId === subscriptionId),
    'Subscription',
  )
}

/** Throws LocalRefusal. */
export function paymentOf({ payments }: LocalState, paymentId: string): LocalPayment {
  return known(
    payments.find((each) => each.paymentId === paymentId),
    'Payment',
  )
}

export function known<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw new LocalRefusal('unknown', `${what} not found`)
  return found
}

/** Bounds what is kept: the oldest goes first, and nothing that is still open. */
function forget(state: LocalState): void {
  const isOpen = (payment: LocalPayment) =>
    payment.state === 'open' || (payment.dispute !== null && !payment.dispute.isDecided)
  state.events = state.events.slice(-MAX_EVENTS)
  state.payments = bounded(state.payments, isOpen)
  state.checkouts = bounded(state.checkouts, ({ state }) => state === 'open' || state === 'pending')
  state.subscriptions = bounded(state.subscriptions, ({ endedAt }) => endedAt === null)
}

function bounded<T>(list: T[], isOpen: (each: T) => boolean): T[] {
  let surplus = list.filter((each) => !isOpen(each)).length - MAX_CLOSED
  return surplus <= 0 ? list : list.filter((each) => isOpen(each) || surplus-- <= 0)
}
