/** Money of the double: what is paid, and what goes back. */

import type Stripe from 'stripe'
import { newPackInvoice } from './invoice-objects.ts'
import { charge, newDispute, newInvoicePayment, newPaymentIntent, newRefund } from './payment-objects.ts'
import type { Store } from './store.ts'
import type { Told } from './told.ts'

export class Money {
  readonly #store: Store
  readonly #told: Told

  constructor(store: Store, told: Told) {
    this.#store = store
    this.#told = told
  }

  /** Tells nothing: its caller knows what else belongs to it. What costs nothing needs no payment. */
  payInvoice(invoice: Stripe.Invoice): void {
    const due = Math.max(0, invoice.total)
    Object.assign(invoice, {
      status: 'paid',
      amount_paid: due,
      amount_remaining: 0,
      attempted: true,
      attempt_count: invoice.attempt_count + 1,
    })
    invoice.status_transitions.paid_at = this.#store.now()
    if (due === 0) return
    const intent = newPaymentIntent(this.#store, {
      amount: due,
      currency: invoice.currency,
      customer: String(invoice.customer),
      metadata: {},
    })
    charge(this.#store, intent)
    newInvoicePayment(this.#store, invoice, intent.id)
  }

  /** As `payInvoice`. */
  payPack(session: Stripe.Checkout.Session): void {
    const intent = session.payment_intent
    if (typeof intent === 'string') charge(this.#store, this.#store.get('paymentIntents', intent))
    const invoice = newPackInvoice(this.#store, session)
    if (typeof intent === 'string') newInvoicePayment(this.#store, invoice, intent)
    session.payment_status = typeof intent === 'string' ? 'paid' : 'no_payment_required'
    session.invoice = invoice.id
  }

  /** The payment of an invoice, or of the checkout of a pack. */
  chargeOf(id: string): Stripe.Charge {
    const session = this.#store.find('sessions', id)
    const payment = this.#store.list('invoicePayments').find(({ invoice }) => invoice === id)
    const intent = session?.payment_intent ?? payment?.payment.payment_intent
    return this.#store.get('charges', this.#store.get('paymentIntents', intent).latest_charge)
  }

  /** Default: all that is not back yet. */
  refund(of: Stripe.Charge, amount = of.amount - of.amount_refunded): Stripe.Refund {
    const refund = newRefund(this.#store, of, amount)
    this.#told.tell('refund.created', refund)
    this.#told.tell('charge.refunded', of)
    return refund
  }

  /** A refund that the customer's bank sends back. */
  failRefund(refund: Stripe.Refund): void {
    const of = this.#store.get('charges', refund.charge)
    of.amount_refunded -= refund.amount
    of.refunded = false
    refund.status = 'failed'
    this.#told.tell('refund.failed', refund)
  }

  openDispute(of: Stripe.Charge, amount = of.amount): Stripe.Dispute {
    const dispute = newDispute(this.#store, of, amount)
    this.#told.tell('charge.dispute.created', dispute)
    this.#told.tell('charge.dispute.funds_withdrawn', dispute)
    return dispute
  }

  closeDispute(dispute: Stripe.Dispute, outcome: 'lost' | 'won'): void {
    dispute.status = outcome
    this.#told.tell('charge.dispute.closed', dispute)
    if (outcome === 'won') this.#told.tell('charge.dispute.funds_reinstated', dispute)
  }
}
