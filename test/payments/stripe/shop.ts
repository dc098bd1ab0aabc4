/** A shop at the double of Stripe: two plans and a pack on sale, and the adapter in front of it. */

import { after, afterEach, before, beforeEach } from 'mocha'
import type Stripe from 'stripe'
import type { CataloguePack, CataloguePlan } from '../../../internal/billing/catalogue.ts'
import type { PaymentProvider } from '../../../internal/billing/ports.ts'
import type { InvoiceReading, PackReading, SubscriptionReading } from '../../../internal/billing/readings.ts'
import { createStripeProvider, type StripeOptions } from '../../../internal/payments/stripe/provider.ts'
import {
  type Choice,
  type Outcome,
  type StripeDouble,
  startStripeDouble,
} from '../../support/stripe/double.ts'
import { stripeSchema } from '../../support/stripe/mock.ts'
import type { StripeSchema } from '../../support/stripe/schema.ts'

export const SECRET = 'whsec_the_first'
export const SECOND_SECRET = 'whsec_the_second'
export const KEY = 'sk_test_double'
export const RETURN_URL = 'https://shop.example/billing'
export const CUSTOMER = 'acme'

export class Shop {
  readonly double: StripeDouble
  readonly plans: CataloguePlan[] = []
  readonly packs: CataloguePack[] = []
  /** Customers of Stripe, by account. */
  readonly customers = new Map<string, string>()
  /** Accounts whose customer was replaced, with the one that is gone. */
  readonly replaced: string[] = []
  readonly provider: PaymentProvider
  readonly starter: Stripe.Price
  readonly large: Stripe.Price
  readonly pack: Stripe.Price

  constructor(double: StripeDouble) {
    this.double = double
    // The one is named by its lookup key, the other by its id.
    this.starter = double.sell({
      amounts: { brl: 4_900, usd: 990 },
      recurring: 'month',
      lookupKey: 'starter-monthly',
    })
    this.large = double.sell({ amounts: { brl: 9_900, usd: 1_990 }, recurring: 'month' })
    this.pack = double.sell({ amounts: { brl: 1_000, usd: 200 } })
    this.plans.push(plan('starter', 'starter-monthly'), plan('large', this.large.id))
    this.packs.push({ packId: 'small-pack', credits: 10_000, isActive: true, offerId: this.pack.id })
    this.provider = this.open()
  }

  /** One more adapter of the same shop: another node, or one that is configured in another way. */
  open(options: Partial<StripeOptions> = {}): PaymentProvider {
    return createStripeProvider({
      key: KEY,
      webhookSecrets: [SECRET, SECOND_SECRET],
      returnUrl: RETURN_URL,
      catalogue: { plans: async () => this.plans, packs: async () => this.packs },
      customers: {
        find: async (_, customerId) => this.customers.get(customerId),
        keep: async (_, customerId, id) => {
          if (!this.customers.has(customerId)) this.customers.set(customerId, id)
          return this.customers.get(customerId)!
        },
        replace: async (_, customerId, { gone, made }) => {
          const isNew = this.customers.get(customerId) === gone
          if (isNew) this.customers.set(customerId, made)
          return { kept: this.customers.get(customerId)!, isNew }
        },
      },
      onCustomerReplaced: ({ customerId, gone }) => this.replaced.push(`${customerId} ${gone}`),
      origin: this.double.origin,
      ...options,
    })
  }

  planPage(customerId = CUSTOMER): Promise<string | undefined> {
    return this.provider.checkoutUrl({
      customerId,
      offerId: 'starter-monthly',
      buys: 'plan',
      planId: 'starter',
    })
  }

  packPage(customerId = CUSTOMER): Promise<string | undefined> {
    const [{ offerId, packId }] = this.packs as [CataloguePack]
    return this.provider.checkoutUrl({ customerId, offerId, buys: 'pack', packId })
  }

  /** The subscription's id. */
  async subscribe(outcome: Outcome = 'pays', choice: Choice = {}): Promise<string> {
    const { subscription } = await this.double.completeCheckout((await this.planPage())!, outcome, choice)
    return String(subscription)
  }

  /** The checkout's id. */
  async buyPack(outcome: Outcome = 'pays', choice: Choice = {}): Promise<string> {
    return (await this.double.completeCheckout((await this.packPage())!, outcome, choice)).id
  }

  latestInvoice(subscriptionId: string): string {
    return String(this.double.store.get('subscriptions', subscriptionId).latest_invoice)
  }

  async subscription(id: string): Promise<SubscriptionReading> {
    return (await this.provider.read({ kind: 'subscription', id })) as SubscriptionReading
  }

  async invoice(id: string): Promise<InvoiceReading> {
    return (await this.provider.read({ kind: 'invoice', id })) as InvoiceReading
  }

  async packOf(id: string): Promise<PackReading> {
    return (await this.provider.read({ kind: 'pack', id })) as PackReading
  }
}

/** Of the running test. Each has a double of its own, whose objects are judged where Stripe's document is there. */
export function shop(): { readonly current: Shop } {
  let schema: StripeSchema | undefined
  let current: Shop
  before(() => {
    schema = stripeSchema()
  })
  beforeEach(async () => {
    current = new Shop(await startStripeDouble({ secret: SECRET, schema }))
  })
  afterEach(() => current.double.stop())
  after(() => {
    schema = undefined
  })
  return {
    get current() {
      return current
    },
  }
}

function plan(planId: string, offerId: string): CataloguePlan {
  const prices = { BRL: 4_900, USD: 990 }
  return {
    planId,
    name: planId,
    prices,
    priceInCents: 4_900,
    currency: 'BRL',
    creditsPerCycle: 50_000,
    isActive: true,
    offerId,
  }
}

/** What a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('it did not reject')
}
