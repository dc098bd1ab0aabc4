/** Refunds and disputes at the local provider. */

import { type Draft, paymentOf, tellPayment } from './draft.ts'
import { type DisputeOutcome, LocalRefusal } from './ports.ts'
import { type LocalPayment, returnedOf } from './state.ts'

/** `amountInCents` at least 1; undefined: all that is left. Throws LocalRefusal. */
export function refund(draft: Draft, paymentId: string, amountInCents: number | undefined): LocalPayment {
  const payment = paidOne(draft, paymentId)
  const left = leftOf(payment)
  if (amountInCents !== undefined && amountInCents > left) {
    throw new LocalRefusal('invalid', `amountInCents must be at most ${left}: that is left of the payment`)
  }
  if (left === 0) throw nothingLeft()
  payment.refundedInCents += amountInCents ?? left
  tellPayment(draft, payment)
  return payment
}

/** Nothing happens to what is not paid, or where nothing is left. */
export function refundRest(draft: Draft, payment: LocalPayment): void {
  if (payment.state === 'paid' && leftOf(payment) > 0) refund(draft, payment.paymentId, undefined)
}

/** All that is left is held. It is decided once that was told (`decide`). Throws LocalRefusal. */
export function beginDispute(draft: Draft, paymentId: string, outcome: DisputeOutcome): LocalPayment {
  const payment = paidOne(draft, paymentId)
  if (payment.dispute !== null && !payment.dispute.isDecided) {
    throw new LocalRefusal('conflict', 'Payment is disputed', 'payment_disputed')
  }
  const heldInCents = leftOf(payment)
  if (heldInCents === 0) throw nothingLeft()
  payment.dispute = { heldInCents, outcome, isDecided: false }
  tellPayment(draft, payment, true)
  return payment
}

/** The end of a dispute that is not decided; nothing happens to any other payment. */
export function decide(draft: Draft, payment: LocalPayment): void {
  if (payment.dispute === null || payment.dispute.isDecided) return
  payment.dispute.isDecided = true
  tellPayment(draft, payment)
}

function paidOne({ state }: Draft, paymentId: string): LocalPayment {
  const payment = paymentOf(state, paymentId)
  if (payment.state !== 'paid') throw new LocalRefusal('conflict', 'Payment is not paid', 'payment_not_paid')
  return payment
}

function leftOf(payment: LocalPayment): number {
  return payment.amountInCents - returnedOf(payment)
}

function nothingLeft(): LocalRefusal {
  return new LocalRefusal('conflict', 'Nothing is left of the payment', 'payment_returned')
}
