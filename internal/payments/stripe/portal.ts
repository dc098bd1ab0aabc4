/** Stripe's billing portal, with a configuration that allows no more than the domain knows. */

import { createHash } from 'node:crypto'
import type Stripe from 'stripe'
import type { CataloguePlan } from '../../billing/catalogue.ts'
import type { ProviderCustomers } from '../../billing/ports.ts'
import { type Connection, idempotencyKey, idOf, isMissing } from './client.ts'
import { STRIPE } from './customers.ts'
import { PORTAL } from './metadata.ts'
import { findPrice, isSold } from './offers.ts'

type Features = Stripe.BillingPortal.ConfigurationCreateParams.Features
type Products = NonNullable<Features['subscription_update']>['products']

/** The portal offers so many products to change to. */
const MOST_PRODUCTS = 10

export interface PortalOptions {
  connection: Connection
  customers: ProviderCustomers
  plans(): Promise<CataloguePlan[]>
  returnUrl: string
}

/** undefined: the account has never bought anything there, or its customer is deleted. */
export async function portalUrl(options: PortalOptions, customerId: string): Promise<string | undefined> {
  const { connection, customers, returnUrl } = options
  const customer = await customers.find(STRIPE, customerId)
  if (customer === undefined) return undefined
  const configuration = await requireConfiguration(options)
  const session = await unlessGone(
    connection.stripe.billingPortal.sessions.create({ customer, configuration, return_url: returnUrl }),
  )
  return session?.url
}

/** undefined: Stripe says that the customer is not there. */
async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isMissing(error) && (error as Stripe.errors.StripeError).param === 'customer') return undefined
    throw error
  }
}

/** The one whose metadata name these features, else a new one: what others of the account have made stays as it is. */
async function requireConfiguration({ connection, plans, returnUrl }: PortalOptions): Promise<string> {
  const { stripe, clock } = connection
  const [products, known] = await Promise.all([
    productsOf(stripe, await plans()),
    stripe.billingPortal.configurations.list({ active: true, limit: 100 }),
  ])
  const features = featuresOf(products)
  const digest = createHash('sha256').update(JSON.stringify(features)).digest('hex').slice(0, 40)
  const found = known.data.find(({ metadata }) => metadata?.[PORTAL] === digest)
  if (found !== undefined) return found.id
  const made = await stripe.billingPortal.configurations.create(
    { features, default_return_url: returnUrl, metadata: { [PORTAL]: digest } },
    { idempotencyKey: idempotencyKey(clock, 'portal', features, returnUrl) },
  )
  return made.id
}

/** Plans that are sold, as prices by product. */
async function productsOf(stripe: Stripe, plans: readonly CataloguePlan[]) {
  const offers = plans.flatMap(({ offerId, isActive }) => (isActive && offerId !== null ? [offerId] : []))
  const prices = await Promise.all([...new Set(offers)].sort().map((offerId) => findPrice(stripe, offerId)))
  const byProduct = new Map<string, string[]>()
  for (const price of prices) {
    const product = idOf(price?.product)
    if (price === undefined || product === undefined || !isSold(price, 'plan')) continue
    byProduct.set(product, [...(byProduct.get(product) ?? []), price.id])
  }
  return [...byProduct]
    .slice(0, MOST_PRODUCTS)
    .map(([product, ids]) => ({ product, prices: ids, adjustable_quantity: { enabled: false } }))
}

function featuresOf(products: NonNullable<Products>): Features {
  return {
    customer_update: { enabled: false },
    invoice_history: { enabled: true },
    payment_method_update: { enabled: true },
    subscription_cancel: { enabled: true, mode: 'at_period_end', proration_behavior: 'none' },
    subscription_update:
      products.length === 0
        ? { enabled: false }
        : {
            enabled: true,
            default_allowed_updates: ['price'],
            // An invoice of its own at once: its time is the time of the change (subscription-reading.ts).
            proration_behavior: 'always_invoice',
            // At once it would give back money of a period whose credits the customer keeps.
            schedule_at_period_end: {
              conditions: [{ type: 'decreasing_item_amount' }, { type: 'shortening_interval' }],
            },
            products,
          },
  }
}
