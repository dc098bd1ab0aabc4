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

/** Events that are kept after they were told. */
export const MAX_EVENTS = 1_000
/** Events that wait to be told. The sweep finds what the others were about. */
export const MAX_UNTOLD = 20_000
/** Kept of each kind of object, besides those that are open or that an event has to name. */
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

/** Bounds what is kept: the oldest goes first, and nothing that is still open, or that has to be told. */
function forget(state: LocalState): void {
  const untold = bounded(state.events, ({ isTold }) => isTold, MAX_UNTOLD)
  state.events = bounded(untold, ({ isTold }) => !isTold, MAX_EVENTS)
  const named = new Set(state.events.flatMap(({ isTold, objectId }) => (isTold ? [] : [objectId])))
  const isOpen = ({ paymentId, checkoutId, state, dispute }: LocalPayment) =>
    state === 'open' ||
    (dispute !== null && !dispute.isDecided) ||
    named.has(paymentId) ||
    (checkoutId !== null && named.has(checkoutId))
  state.payments = bounded(state.payments, isOpen, MAX_CLOSED)
  state.checkouts = bounded(
    state.checkouts,
    ({ checkoutId, state }) => state === 'open' || state === 'pending' || named.has(checkoutId),
    MAX_CLOSED,
  )
  state.subscriptions = bounded(
    state.subscriptions,
    ({ subscriptionId, endedAt }) => endedAt === null || named.has(subscriptionId),
    MAX_CLOSED,
  )
}

/** All that stay, and the last `most` of the others. */
function bounded<T>(list: T[], stays: (each: T) => boolean, most: number): T[] {
  let surplus = list.filter((each) => !stays(each)).length - most
  return surplus <= 0 ? list : list.filter((each) => stays(each) || surplus-- <= 0)
}
