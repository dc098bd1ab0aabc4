/** Invoices of the double: of subscriptions, and those that Stripe makes after the payment of a checkout. */

import type Stripe from 'stripe'
import { listOf } from './objects.ts'
import type { Store } from './store.ts'

export interface NewLine {
  price: Stripe.Price
  amount: number
  start: number
  end: number
  proration: boolean
  /** A proration that gives back what the line of this invoice billed. */
  credits?: Stripe.Invoice
}

export interface NewInvoice {
  subscription: Stripe.Subscription
  reason: Stripe.Invoice.BillingReason
  lines: readonly NewLine[]
  tax: number
}

/** Finalized and open. */
export function newInvoice(store: Store, { subscription, reason, lines, tax }: NewInvoice): Stripe.Invoice {
  const id = store.newId('invoices')
  const subtotal = lines.reduce((sum, { amount }) => sum + amount, 0)
  const details = { subscription: subscription.id, metadata: { ...subscription.metadata } }
  return store.add('invoices', {
    ...invoiceBase(store, id, { currency: subscription.currency, subtotal, tax }),
    billing_reason: reason,
    customer: subscription.customer,
    lines: listOf(
      lines.map((line, index) => newInvoiceLine(id, subscription, line, index)),
      `/v1/invoices/${id}/lines`,
    ),
    parent: { type: 'subscription_details', quote_details: null, subscription_details: details },
  } as unknown as Stripe.Invoice)
}

/** As Stripe makes one after the payment of a checkout; it is of no subscription. */
export function newPackInvoice(store: Store, session: Stripe.Checkout.Session): Stripe.Invoice {
  const id = store.newId('invoices')
  const tax = session.total_details?.amount_tax ?? 0
  const total = session.amount_total ?? 0
  return store.add('invoices', {
    ...invoiceBase(store, id, { currency: session.currency ?? 'usd', subtotal: total - tax, tax }),
    amount_paid: total,
    amount_remaining: 0,
    billing_reason: 'manual',
    customer: session.customer,
    lines: listOf([], `/v1/invoices/${id}/lines`),
    metadata: { ...session.metadata },
    parent: null,
    status: 'paid',
    status_transitions: { ...noTransitions(), finalized_at: store.now(), paid_at: store.now() },
  } as unknown as Stripe.Invoice)
}

function invoiceBase(
  store: Store,
  id: string,
  { currency, subtotal, tax }: { currency: string; subtotal: number; tax: number },
) {
  const now = store.now()
  const total = subtotal + tax
  const due = Math.max(0, total)
  return {
    id,
    object: 'invoice',
    amount_due: due,
    amount_overpaid: 0,
    amount_paid: 0,
    amount_paid_off_stripe: 0,
    amount_remaining: due,
    amount_shipping: 0,
    attempt_count: 0,
    attempted: false,
    auto_advance: true,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null, provider: null, status: null },
    collection_method: 'charge_automatically',
    created: now,
    currency,
    default_tax_rates: [],
    discounts: [],
    issuer: { type: 'self' },
    livemode: false,
    metadata: {},
    payment_settings: { default_mandate: null, payment_method_options: null, payment_method_types: null },
    period_end: now,
    period_start: now,
    post_payment_credit_notes_amount: 0,
    pre_payment_credit_notes_amount: 0,
    starting_balance: 0,
    status: 'open',
    status_transitions: { ...noTransitions(), finalized_at: now },
    subtotal,
    total,
    total_taxes: [],
  }
}

function noTransitions() {
  return { finalized_at: null, marked_uncollectible_at: null, paid_at: null, voided_at: null }
}

function newInvoiceLine(
  invoice: string,
  subscription: Stripe.Subscription,
  { price, amount, start, end, proration, credits }: NewLine,
  index: number,
) {
  const { id: subscriptionId, items } = subscription
  const proration_details = { credited_items: credits ? creditedItems(credits) : null }
  const details = { invoice_item: null, proration, proration_details, subscription: subscriptionId }

  return {
    id: `il_${invoice.slice(3)}${index}`,
    object: 'line_item',
    amount,
    currency: subscription.currency,
    description: null,
    discount_amounts: [],
    discountable: !proration,
    discounts: [],
    invoice,
    livemode: false,
    metadata: { ...subscription.metadata },
    parent: proration
      ? {
          invoice_item_details: { ...details, invoice_item: `ii_${invoice.slice(3)}${index}` },
          subscription_item_details: null,
          type: 'invoice_item_details',
        }
      : {
          invoice_item_details: null,
          subscription_item_details: { ...details, subscription_item: items.data[0]!.id },
          type: 'subscription_item_details',
        },
    period: { start, end },
    pricing: {
      price_details: { price: price.id, product: String(price.product) },
      type: 'price_details',
      unit_amount_decimal: `${amount}`,
    },
    quantity: 1,
    subtotal: amount,
    taxes: [],
  }
}

function creditedItems({ id, lines }: Stripe.Invoice) {
  return { invoice: id, invoice_line_items: lines.data.slice(0, 1).map((line) => line.id) }
}
