/** Payments of the double: what moved money, and what moved it back. */

import type Stripe from 'stripe'
import type { Store } from './store.ts'

export interface NewPayment {
  amount: number
  currency: string
  customer: string
  metadata: Record<string, string>
}

/** Waiting for its customer: no charge was made yet. */
export function newPaymentIntent(
  store: Store,
  { amount, currency, customer, metadata }: NewPayment,
): Stripe.PaymentIntent {
  return store.add('paymentIntents', {
    id: store.newId('paymentIntents'),
    object: 'payment_intent',
    amount,
    amount_capturable: 0,
    amount_received: 0,
    capture_method: 'automatic',
    confirmation_method: 'automatic',
    created: store.now(),
    currency,
    customer,
    latest_charge: null,
    livemode: false,
    metadata,
    payment_method_types: ['card'],
    status: 'requires_action',
  } as unknown as Stripe.PaymentIntent)
}

/** The money came. */
export function charge(store: Store, intent: Stripe.PaymentIntent): Stripe.Charge {
  const made = store.add('charges', {
    id: store.newId('charges'),
    object: 'charge',
    amount: intent.amount,
    amount_captured: intent.amount,
    amount_refunded: 0,
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    captured: true,
    created: store.now(),
    currency: intent.currency,
    customer: intent.customer,
    disputed: false,
    livemode: false,
    metadata: { ...intent.metadata },
    paid: true,
    payment_intent: intent.id,
    refunded: false,
    status: 'succeeded',
  } as unknown as Stripe.Charge)
  Object.assign(intent, { status: 'succeeded', amount_received: intent.amount, latest_charge: made.id })
  return made
}

export function newInvoicePayment(
  store: Store,
  invoice: Stripe.Invoice,
  paymentIntent: string,
): Stripe.InvoicePayment {
  const isPaid = invoice.status === 'paid'
  return store.add('invoicePayments', {
    id: store.newId('invoicePayments'),
    object: 'invoice_payment',
    amount_paid: isPaid ? invoice.total : null,
    amount_requested: invoice.total,
    created: store.now(),
    currency: invoice.currency,
    invoice: invoice.id,
    is_default: true,
    livemode: false,
    payment: { payment_intent: paymentIntent, type: 'payment_intent' },
    status: isPaid ? 'paid' : 'open',
    status_transitions: { canceled_at: null, paid_at: isPaid ? store.now() : null },
  } as unknown as Stripe.InvoicePayment)
}

export function newRefund(store: Store, of: Stripe.Charge, amount: number): Stripe.Refund {
  of.amount_refunded += amount
  of.refunded = of.amount_refunded === of.amount
  return store.add('refunds', {
    id: store.newId('refunds'),
    object: 'refund',
    amount,
    charge: of.id,
    created: store.now(),
    currency: of.currency,
    metadata: {},
    payment_intent: of.payment_intent,
    reason: null,
    status: 'succeeded',
  } as unknown as Stripe.Refund)
}

export function newDispute(store: Store, of: Stripe.Charge, amount: number): Stripe.Dispute {
  of.disputed = true
  return store.add('disputes', {
    id: store.newId('disputes'),
    object: 'dispute',
    amount,
    balance_transactions: [],
    charge: of.id,
    created: store.now(),
    currency: of.currency,
    enhanced_eligibility_types: [],
    evidence: noEvidence(),
    evidence_details: {
      due_by: store.now() + 604_800,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
    },
    is_charge_refundable: false,
    livemode: false,
    metadata: {},
    payment_intent: of.payment_intent,
    reason: 'fraudulent',
    status: 'needs_response',
  } as unknown as Stripe.Dispute)
}

function noEvidence() {
  return { enhanced_evidence: {} }
}
