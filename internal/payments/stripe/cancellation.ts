/** The end of subscriptions at Stripe, agreed as often as it is asked for. */

import type Stripe from 'stripe'
import type { Cancellation } from '../../billing/ports.ts'
import { type Connection, idempotencyKey, idOf, isInvalid } from './client.ts'
import { paymentsOf } from './invoice-reading.ts'
import type { PaymentName } from './returned.ts'

/** Stripe takes so many characters of a comment. */
const COMMENT_LENGTH = 5_000
const ENDED = ['canceled', 'incomplete_expired']

export async function cancelAtPeriodEnd(stripe: Stripe, cancellation: Cancellation): Promise<void> {
  const { subscriptionId } = cancellation
  const cancel = () =>
    stripe.subscriptions.update(subscriptionId, { cancel_at_period_end: true, ...detailsOf(cancellation) })
  await unlessEnded(stripe, subscriptionId, cancel().catch(withoutSchedule(stripe, subscriptionId, cancel)))
}

/** A lesser plan that waits for the end of the period is a schedule, and nothing else may be changed beside one. */
function withoutSchedule(stripe: Stripe, id: string, change: () => Promise<unknown>) {
  return async (error: unknown): Promise<unknown> => {
    if (!isInvalid(error)) throw error
    const schedule = idOf((await stripe.subscriptions.retrieve(id)).schedule)
    if (schedule === undefined) throw error
    await stripe.subscriptionSchedules.release(schedule)
    return await change()
  }
}

export async function cancelNow(stripe: Stripe, cancellation: Cancellation): Promise<void> {
  const { subscriptionId } = cancellation
  await unlessEnded(
    stripe,
    subscriptionId,
    stripe.subscriptions.cancel(subscriptionId, {
      invoice_now: false,
      prorate: false,
      ...detailsOf(cancellation),
    }),
  )
}

/**
 * Ends it, and pays back what its paid invoices brought and is not back yet. Resolves with why Stripe refused a refund for
 * good: it must not renew for ever for that.
 */
export async function cancelAndRefund(connection: Connection, subscriptionId: string): Promise<string[]> {
  // The money first: once it has ended, nobody finds it to do what is left. Then what was paid in between.
  await refundPaid(connection, subscriptionId)
  await cancelNow(connection.stripe, { subscriptionId, reason: null })
  return await refundPaid(connection, subscriptionId)
}

async function refundPaid(connection: Connection, subscriptionId: string): Promise<string[]> {
  const { stripe } = connection
  const invoices = await stripe.invoices
    .list({ subscription: subscriptionId, status: 'paid', limit: 100, expand: ['data.payments'] })
    .autoPagingToArray({ limit: 1_000 })
  const refused = await Promise.all(
    invoices.flatMap(paymentsOf).map((payment) => refund(connection, payment)),
  )
  return refused.filter((reason) => reason !== undefined)
}

/** Resolves with why Stripe refuses it for good; undefined: it went back, or had gone back before. */
async function refund({ stripe, clock }: Connection, payment: PaymentName): Promise<string | undefined> {
  try {
    await stripe.refunds.create(payment, { idempotencyKey: idempotencyKey(clock, 'refund', payment) })
    return undefined
  } catch (error) {
    if (!isInvalid(error)) throw error
    const { code = '', message } = error as Stripe.errors.StripeError
    return ALREADY_BACK.includes(code) ? undefined : message
  }
}

const ALREADY_BACK = ['charge_already_refunded', 'charge_disputed']

/** A subscription that has ended is refused as one that never was. It is read to tell them apart. */
async function unlessEnded(stripe: Stripe, id: string, change: Promise<unknown>): Promise<void> {
  try {
    await change
  } catch (error) {
    if (!isInvalid(error)) throw error
    const { status } = await stripe.subscriptions.retrieve(id)
    if (!ENDED.includes(status)) throw error
  }
}

function detailsOf({ reason }: Cancellation) {
  if (reason === null || reason === '') return {}
  return { cancellation_details: { comment: reason.slice(0, COMMENT_LENGTH) } }
}
