/** What of a payment went back, or is held by a dispute. */

import type Stripe from 'stripe'

export type PaymentName = { payment_intent: string } | { charge: string }

/** Of one payment, at most; more is not asked for. */
const MOST = 1_000
/** Money that the customer's bank only asks about, or that came back, is not gone. */
const HOLDS_NOTHING = ['won', 'prevented', 'warning_needs_response', 'warning_under_review', 'warning_closed']
const CAME_TO_NOTHING = ['failed', 'canceled']

/** In cents, with tax. A refund counts from the moment that it is asked for, unless it fails. */
export async function returnedOf(stripe: Stripe, payments: readonly PaymentName[]): Promise<number> {
  const amounts = await Promise.all(payments.map((payment) => returnedOfOne(stripe, payment)))
  return amounts.reduce((sum, amount) => sum + amount, 0)
}

async function returnedOfOne(stripe: Stripe, payment: PaymentName): Promise<number> {
  const [refunds, disputes] = await Promise.all([
    stripe.refunds.list({ ...payment, limit: 100 }).autoPagingToArray({ limit: MOST }),
    stripe.disputes.list({ ...payment, limit: 100 }).autoPagingToArray({ limit: MOST }),
  ])
  const gone = refunds.filter(({ status }) => !CAME_TO_NOTHING.includes(status ?? ''))
  const held = disputes.filter(({ status }) => !HOLDS_NOTHING.includes(status))
  return [...gone, ...held].reduce((sum, { amount }) => sum + amount, 0)
}
