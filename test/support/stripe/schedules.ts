/** Schedules of the double: a lesser plan that waits for the end of the period, as the portal makes it. */

import type Stripe from 'stripe'
import { itemOf } from './objects.ts'
import type { Store } from './store.ts'
import type { Told } from './told.ts'

/** The subscription goes to the price with its next period. Nothing else of it may be changed until then. */
export function schedule(
  store: Store,
  told: Told,
  subscription: Stripe.Subscription,
  price: Stripe.Price,
): Stripe.SubscriptionSchedule {
  const { current_period_start: start, current_period_end: end, price: present } = itemOf(subscription)
  const made = store.add('schedules', {
    id: store.newId('schedules'),
    object: 'subscription_schedule',
    application: null,
    billing_mode: { type: 'classic', flexible: null },
    canceled_at: null,
    completed_at: null,
    created: store.now(),
    current_phase: { start_date: start, end_date: end },
    customer: subscription.customer,
    customer_account: null,
    default_settings: defaultSettings(),
    end_behavior: 'release',
    livemode: false,
    metadata: {},
    phases: [phaseOf(present, start, end), phaseOf(price, end, end + 1)],
    released_at: null,
    released_subscription: null,
    status: 'active',
    subscription: subscription.id,
    test_clock: null,
  } as unknown as Stripe.SubscriptionSchedule)
  subscription.schedule = made.id
  told.tell('customer.subscription.updated', subscription)
  return made
}

/** The subscription goes on as it is. */
export function release(store: Store, told: Told, made: Stripe.SubscriptionSchedule): void {
  const subscription = store.get('subscriptions', made.subscription)
  Object.assign(made, {
    status: 'released',
    released_at: store.now(),
    released_subscription: subscription.id,
    subscription: null,
    current_phase: null,
  })
  subscription.schedule = null
  told.tell('customer.subscription.updated', subscription)
}

/** The price that waits for the end of the period; it waits no more. */
export function nextPrice(store: Store, subscription: Stripe.Subscription): Stripe.Price | undefined {
  const made = store.find('schedules', String(subscription.schedule))
  if (made === undefined) return undefined
  Object.assign(made, { status: 'completed', completed_at: store.now(), current_phase: null })
  subscription.schedule = null
  return store.get('prices', made.phases[1]!.items[0]!.price)
}

function phaseOf(price: Stripe.Price, start: number, end: number) {
  return {
    add_invoice_items: [],
    application_fee_percent: null,
    billing_cycle_anchor: null,
    collection_method: null,
    currency: price.currency,
    default_payment_method: null,
    default_tax_rates: [],
    description: null,
    discounts: [],
    end_date: end,
    invoice_settings: null,
    items: [{ discounts: [], metadata: {}, price: price.id, quantity: 1, tax_rates: [] }],
    metadata: {},
    on_behalf_of: null,
    proration_behavior: 'none',
    start_date: start,
    transfer_data: null,
    trial_end: null,
  }
}

function defaultSettings() {
  return {
    application_fee_percent: null,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: 'automatic',
    collection_method: 'charge_automatically',
    default_payment_method: null,
    description: null,
    invoice_settings: { account_tax_ids: null, days_until_due: null, issuer: { type: 'self' } },
    on_behalf_of: null,
    transfer_data: null,
  }
}
