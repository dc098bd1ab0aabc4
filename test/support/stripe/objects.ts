/** Stripe's objects as they are when they are made, with all that its OpenAPI document requires of them. */

import type Stripe from 'stripe'
import type { Store } from './store.ts'

/** A field of these is always there; the others say what is wanted. */
type Made<T> = Partial<T>

export function listOf<T>(data: T[], url: string): Stripe.ApiList<T> {
  return { object: 'list', data, has_more: false, url }
}

export function newCustomer(store: Store, fields: Made<Stripe.Customer>): Stripe.Customer {
  return store.add('customers', {
    id: store.newId('customers'),
    object: 'customer',
    created: store.now(),
    livemode: false,
    description: null,
    email: null,
    metadata: {},
    ...fields,
  } as Stripe.Customer)
}

export interface NewPrice {
  /** In cents, by currency in lower case; the first is the price's own. */
  amounts: Readonly<Record<string, number>>
  recurring?: 'month' | 'year'
  lookupKey?: string
  product?: string
  id?: string
}

export function newPrice(
  store: Store,
  { amounts, recurring, lookupKey, product, id }: NewPrice,
): Stripe.Price {
  const [[currency, amount] = ['usd', 0]] = Object.entries(amounts)
  const options = Object.entries(amounts).map(
    ([name, unit_amount]) =>
      [
        name,
        {
          custom_unit_amount: null,
          tax_behavior: 'unspecified',
          unit_amount,
          unit_amount_decimal: `${unit_amount}`,
        },
      ] as const,
  )
  return store.add('prices', {
    id: id ?? store.newId('prices'),
    object: 'price',
    active: true,
    billing_scheme: 'per_unit',
    created: store.now(),
    currency,
    currency_options: Object.fromEntries(options),
    livemode: false,
    lookup_key: lookupKey ?? null,
    metadata: {},
    nickname: null,
    product: product ?? newProduct(store).id,
    recurring: recurring
      ? {
          interval: recurring,
          interval_count: 1,
          meter: null,
          usage_type: 'licensed',
        }
      : null,
    type: recurring ? 'recurring' : 'one_time',
    unit_amount: amount,
    unit_amount_decimal: `${amount}`,
  } as unknown as Stripe.Price)
}

export function newProduct(store: Store): Stripe.Product {
  return store.add('products', {
    id: store.newId('products'),
    object: 'product',
    active: true,
    created: store.now(),
    images: [],
    livemode: false,
    marketing_features: [],
    metadata: {},
    name: 'A product',
    updated: store.now(),
  } as unknown as Stripe.Product)
}

export function newSession(store: Store, fields: Made<Stripe.Checkout.Session>): Stripe.Checkout.Session {
  return store.add('sessions', {
    id: store.newId('sessions'),
    object: 'checkout.session',
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    created: store.now(),
    custom_fields: [],
    custom_text: {
      after_submit: null,
      shipping_address: null,
      submit: null,
      terms_of_service_acceptance: null,
    },
    expires_at: store.now() + 86_400,
    invoice: null,
    livemode: false,
    payment_intent: null,
    payment_method_types: ['card'],
    payment_status: 'unpaid',
    shipping_options: [],
    status: 'open',
    subscription: null,
    ...fields,
  } as Stripe.Checkout.Session)
}

export interface NewSubscription {
  customer: string
  price: Stripe.Price
  currency: string
  metadata: Record<string, string>
  status: Stripe.Subscription.Status
  periodEnd: number
}

export function newSubscription(store: Store, made: NewSubscription): Stripe.Subscription {
  const { customer, price, currency, metadata, status, periodEnd } = made
  const id = store.newId('subscriptions')
  const now = store.now()
  return store.add('subscriptions', {
    id,
    object: 'subscription',
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: now,
    billing_mode: { type: 'classic', flexible: null },
    billing_schedules: [],
    cancel_at: null,
    cancel_at_period_end: false,
    canceled_at: null,
    cancellation_details: { comment: null, feedback: null, reason: null },
    collection_method: 'charge_automatically',
    created: now,
    currency,
    customer,
    discounts: [],
    ended_at: null,
    invoice_settings: { account_tax_ids: null, issuer: { type: 'self' } },
    items: listOf(
      [newItem(id, price, { start: now, end: periodEnd })],
      `/v1/subscription_items?subscription=${id}`,
    ),
    latest_invoice: null,
    livemode: false,
    metadata,
    start_date: now,
    status,
  } as unknown as Stripe.Subscription)
}

function newItem(subscription: string, price: Stripe.Price, period: { start: number; end: number }) {
  return {
    id: `si_${subscription.slice(4)}`,
    object: 'subscription_item',
    created: period.start,
    current_period_end: period.end,
    current_period_start: period.start,
    discounts: [],
    metadata: {},
    price,
    quantity: 1,
    subscription,
    tax_rates: [],
  } as unknown as Stripe.SubscriptionItem
}

export function itemOf({ items }: Stripe.Subscription): Stripe.SubscriptionItem {
  return items.data[0]!
}
