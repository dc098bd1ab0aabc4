/** What the double keeps: Stripe's objects by kind, and a clock of its own. */

import { randomBytes } from 'node:crypto'
import type Stripe from 'stripe'

export interface Tables {
  customers: Stripe.Customer
  products: Stripe.Product
  prices: Stripe.Price
  sessions: Stripe.Checkout.Session
  subscriptions: Stripe.Subscription
  schedules: Stripe.SubscriptionSchedule
  invoices: Stripe.Invoice
  invoicePayments: Stripe.InvoicePayment
  paymentIntents: Stripe.PaymentIntent
  charges: Stripe.Charge
  refunds: Stripe.Refund
  disputes: Stripe.Dispute
  events: Stripe.Event
  configurations: Stripe.BillingPortal.Configuration
  portalSessions: Stripe.BillingPortal.Session
  endpoints: Stripe.WebhookEndpoint
}

export type Kind = keyof Tables

/** Each kind's path, and what its ids begin with. */
export const KINDS: Readonly<Record<Kind, { path: string; prefix: string }>> = {
  customers: { path: 'customers', prefix: 'cus' },
  products: { path: 'products', prefix: 'prod' },
  prices: { path: 'prices', prefix: 'price' },
  sessions: { path: 'checkout/sessions', prefix: 'cs_test' },
  subscriptions: { path: 'subscriptions', prefix: 'sub' },
  schedules: { path: 'subscription_schedules', prefix: 'sub_sched' },
  invoices: { path: 'invoices', prefix: 'in' },
  invoicePayments: { path: 'invoice_payments', prefix: 'inpay' },
  paymentIntents: { path: 'payment_intents', prefix: 'pi' },
  charges: { path: 'charges', prefix: 'ch' },
  refunds: { path: 'refunds', prefix: 're' },
  disputes: { path: 'disputes', prefix: 'du' },
  events: { path: 'events', prefix: 'evt' },
  configurations: { path: 'billing_portal/configurations', prefix: 'bpc' },
  portalSessions: { path: 'billing_portal/sessions', prefix: 'bps' },
  endpoints: { path: 'webhook_endpoints', prefix: 'we' },
}

export class Store {
  readonly #tables = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, new Map()])) as unknown as {
    [K in Kind]: Map<string, Tables[K]>
  }
  #aheadMs = 0

  /** Unix seconds. */
  now(): number {
    return Math.floor((Date.now() + this.#aheadMs) / 1_000)
  }

  /** The clock never goes back. */
  moveTo(seconds: number): void {
    this.#aheadMs += Math.max(0, seconds - this.now()) * 1_000
  }

  newId(kind: Kind): string {
    return `${KINDS[kind].prefix}_${randomBytes(12).toString('hex')}`
  }

  add<K extends Kind>(kind: K, object: Tables[K]): Tables[K] {
    this.#tables[kind].set(object.id, object)
    return object
  }

  find<K extends Kind>(kind: K, id: string): Tables[K] | undefined {
    return this.#tables[kind].get(id)
  }

  get<K extends Kind>(kind: K, id: unknown): Tables[K] {
    const found = typeof id === 'string' ? this.find(kind, id) : undefined
    if (found === undefined) throw new MissingError(kind, String(id))
    return found
  }

  /** A deleted customer can be read, and is missing for everything else. */
  payer(id: unknown): Stripe.Customer {
    const customer = this.get('customers', id)
    if ('deleted' in customer) throw new MissingError('customers', customer.id, 'customer')
    return customer
  }

  /** Newest first, as Stripe lists. */
  list<K extends Kind>(kind: K): Tables[K][] {
    return [...this.#tables[kind].values()].reverse()
  }
}

/** What is asked for is not there: Stripe's 404. */
export class MissingError extends Error {
  override readonly name = 'MissingError'

  /** The parameter that named it. */
  readonly param: string

  constructor(kind: Kind, id: string, param = 'id') {
    super(`No such ${KINDS[kind].path.split('/').at(-1)!.replace(/s$/, '')}: '${id}'`)
    this.param = param
  }
}
