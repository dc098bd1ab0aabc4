/** Configurations and sessions of the billing portal, and webhook endpoints, as a request asks for them. */

import type Stripe from 'stripe'
import { type Form, inner, metadataIn, text, texts } from './form.ts'
import type { Store } from './store.ts'

export function newConfiguration(store: Store, form: Form): Stripe.BillingPortal.Configuration {
  const features = inner(form, 'features')
  const isOn = (name: string) => text(inner(features, name), 'enabled') === 'true'
  const cancel = inner(features, 'subscription_cancel')
  const update = inner(features, 'subscription_update')
  return store.add('configurations', {
    id: store.newId('configurations'),
    object: 'billing_portal.configuration',
    active: true,
    application: null,
    business_profile: { headline: null, privacy_policy_url: null, terms_of_service_url: null },
    created: store.now(),
    default_return_url: text(form, 'default_return_url') ?? null,
    features: {
      customer_update: { allowed_updates: [], enabled: isOn('customer_update') },
      invoice_history: { enabled: isOn('invoice_history') },
      payment_method_update: { enabled: isOn('payment_method_update'), payment_method_configuration: null },
      subscription_cancel: {
        cancellation_reason: { enabled: false, options: [] },
        enabled: isOn('subscription_cancel'),
        mode: text(cancel, 'mode') ?? 'at_period_end',
        proration_behavior: text(cancel, 'proration_behavior') ?? 'none',
      },
      subscription_update: {
        billing_cycle_anchor: null,
        default_allowed_updates: texts(update, 'default_allowed_updates'),
        enabled: isOn('subscription_update'),
        products: Object.values(inner(update, 'products')).map((product) => productOf(product as Form)),
        proration_behavior: text(update, 'proration_behavior') ?? 'none',
        schedule_at_period_end: {
          conditions: Object.values(inner(inner(update, 'schedule_at_period_end'), 'conditions')),
        },
        trial_update_behavior: 'end_trial',
      },
    },
    is_default: false,
    livemode: false,
    login_page: { enabled: false, url: null },
    metadata: metadataIn(form),
    name: null,
    updated: store.now(),
  } as unknown as Stripe.BillingPortal.Configuration)
}

function productOf(product: Form) {
  return {
    adjustable_quantity: { enabled: false, maximum: null, minimum: 1 },
    prices: texts(product, 'prices'),
    product: text(product, 'product'),
  }
}

export function newPortalSession(store: Store, form: Form, origin: string): Stripe.BillingPortal.Session {
  const id = store.newId('portalSessions')
  return store.add('portalSessions', {
    id,
    object: 'billing_portal.session',
    configuration: store.get('configurations', text(form, 'configuration')).id,
    created: store.now(),
    customer: store.payer(text(form, 'customer')).id,
    customer_account: null,
    flow: null,
    livemode: false,
    locale: null,
    on_behalf_of: null,
    return_url: text(form, 'return_url') ?? null,
    url: `${origin}/portal/${id}`,
  } as unknown as Stripe.BillingPortal.Session)
}

export function newEndpoint(store: Store, form: Form): Stripe.WebhookEndpoint {
  return store.add('endpoints', {
    id: store.newId('endpoints'),
    object: 'webhook_endpoint',
    api_version: text(form, 'api_version') ?? null,
    application: null,
    created: store.now(),
    description: text(form, 'description') ?? null,
    enabled_events: texts(form, 'enabled_events'),
    livemode: false,
    metadata: metadataIn(form),
    status: 'enabled',
    url: text(form, 'url'),
  } as unknown as Stripe.WebhookEndpoint)
}
