/**
 * Stripe as tests need it: an HTTP server that keeps objects as Stripe does, with a clock of its own, and tells events
 * signed by Stripe's own helper. With the OpenAPI document of stripe-mock it judges at its end every object that it
 * showed. What customers and the owner do at Stripe's sites, tests do by its methods; each resolves when what it
 * changed was told.
 */

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type Stripe from 'stripe'
import { ApiServer } from './api-server.ts'
import { Checkouts, type Choice, type Outcome } from './checkouts.ts'
import { Money } from './money.ts'
import { type NewPrice, newCustomer, newPrice } from './objects.ts'
import { inOldVersion } from './old-version.ts'
import { Rendering } from './rendering.ts'
import { schedule } from './schedules.ts'
import type { StripeSchema } from './schema.ts'
import { type Kind, Store, type Tables } from './store.ts'
import { amountIn, type ChangeOutcome, Subscriptions } from './subscriptions.ts'
import type { Signed } from './told.ts'
import { Told } from './told.ts'

export type { Choice, Outcome } from './checkouts.ts'
export type { Signed } from './told.ts'

const DAY_S = 86_400

export interface DoubleOptions {
  /** Of the endpoint: `whsec_…`. */
  secret: string
  /** Default: objects are not judged. */
  schema?: StripeSchema | undefined
}

export async function startStripeDouble(options: DoubleOptions): Promise<StripeDouble> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return new StripeDouble(server, options)
}

export class StripeDouble {
  /** Base address. */
  readonly origin: string
  /** Its API: requests as they came, `failing`, `slowMs`. */
  readonly api: ApiServer
  readonly store = new Store()
  readonly told: Told
  readonly money: Money
  readonly subscriptions: Subscriptions
  readonly #checkouts: Checkouts
  readonly #rendering: Rendering
  readonly #schema: StripeSchema | undefined
  /** What `stop` judges. Compiling the schema takes seconds, and an answer that waited for it came too late. */
  readonly #judgedLater: object[] = []

  constructor(server: Server, { secret, schema }: DoubleOptions) {
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    this.#schema = schema
    this.#rendering = new Rendering(this.store)
    this.told = new Told(this.store, secret, (object) => this.#shown(object))
    this.money = new Money(this.store, this.told)
    this.subscriptions = new Subscriptions(this.store, this.told, this.money)
    this.#checkouts = new Checkouts(this.store, this.told, this.money, this.subscriptions)
    const { store, money, subscriptions, told, origin } = this
    const parts = { store, money, subscriptions, checkouts: this.#checkouts, told, origin }
    this.api = new ApiServer(server, parts, (object, expand) => this.#shown(object, expand))
  }

  /** Where fields stand in what it shows from now on: as the pinned API version has them, or as those before 2025-03-31. */
  set version(version: 'new' | 'old') {
    this.#rendering.version = version
  }

  /** Events are posted there; undefined: they are kept only. */
  set deliverTo(url: string | undefined) {
    this.told.deliverTo = url
  }

  /** How many requests came; with a path, of those that begin so: `POST /v1/customers`. */
  requests(start = ''): number {
    return this.api.asked.filter(({ method, path }) => `${method} ${path}`.startsWith(start)).length
  }

  /** A price in the catalogue of Stripe; its id, or its lookup key, is an offer. */
  sell(price: NewPrice): Stripe.Price {
    return newPrice(this.store, price)
  }

  /** The page's customer decides. `url`: what `checkoutUrl` answered. */
  async completeCheckout(
    url: string,
    outcome: Outcome,
    choice: Choice = {},
  ): Promise<Stripe.Checkout.Session> {
    const session = this.store.get('sessions', new URL(url).pathname.split('/').at(-1)!)
    this.#checkouts.choose(session, outcome, choice)
    await this.told.settled()
    return session
  }

  /** By hand, in the dashboard: its subscriptions end with it, and nothing more can be sold to it. */
  async deleteCustomer(customerId: string): Promise<void> {
    for (const subscription of this.store.list('subscriptions')) {
      const lives = !['canceled', 'incomplete_expired'].includes(subscription.status)
      if (subscription.customer === customerId && lives) this.subscriptions.cancelNow(subscription)
    }
    const customer: Partial<Stripe.Customer> = this.store.get('customers', customerId)
    for (const name of Object.keys(customer)) {
      if (name !== 'id' && name !== 'object') delete customer[name as keyof Stripe.Customer]
    }
    Object.assign(customer, { deleted: true })
    await this.told.settled()
  }

  async settleLatePayments(): Promise<void> {
    this.#checkouts.settleLate()
    await this.told.settled()
  }

  /** Late payments arrive, periods end and renew, open pages expire. */
  async advance(days: number): Promise<void> {
    this.#checkouts.settleLate()
    this.subscriptions.settleLate()
    const until = this.store.now() + days * DAY_S
    for (const session of this.store.list('sessions')) {
      if (session.status === 'open' && session.expires_at <= until) this.#checkouts.expire(session)
    }
    this.subscriptions.advanceTo(until)
    await this.told.settled()
  }

  /** Its next renewal fails. */
  failPayment(subscriptionId: string): void {
    this.subscriptions.failNextRenewal(subscriptionId)
  }

  async cancel(subscriptionId: string, { now = false }: { now?: boolean } = {}): Promise<void> {
    const subscription = this.store.get('subscriptions', subscriptionId)
    if (now) this.subscriptions.cancelNow(subscription)
    else this.subscriptions.cancelAtPeriodEnd(subscription, undefined)
    await this.told.settled()
  }

  /** Takes a cancellation back, and pays what is open. */
  async resume(subscriptionId: string): Promise<void> {
    this.subscriptions.takeBack(this.store.get('subscriptions', subscriptionId))
    await this.told.settled()
  }

  /** `offerId`: a price or a lookup key. */
  async changePlan(
    subscriptionId: string,
    offerId: string,
    outcome: ChangeOutcome = 'pays',
  ): Promise<Stripe.Invoice> {
    const subscription = this.store.get('subscriptions', subscriptionId)
    const invoice = this.subscriptions.changePlan(subscription, this.#price(offerId), outcome)
    await this.told.settled()
    return invoice
  }

  /** A lesser plan, in the portal: it waits for the end of the period. */
  async schedulePlan(subscriptionId: string, offerId: string): Promise<Stripe.SubscriptionSchedule> {
    const subscription = this.store.get('subscriptions', subscriptionId)
    const made = schedule(this.store, this.told, subscription, this.#price(offerId))
    await this.told.settled()
    return made
  }

  /** Of an invoice, or of the checkout of a pack, in cents; default: all that is not back yet. */
  async refund(id: string, amount?: number): Promise<Stripe.Refund> {
    const refund = this.money.refund(this.money.chargeOf(id), amount)
    await this.told.settled()
    return refund
  }

  /** It is opened, told, and then decided. */
  async dispute(id: string, outcome: 'lost' | 'won'): Promise<void> {
    const dispute = this.money.openDispute(this.money.chargeOf(id))
    await this.told.settled()
    this.money.closeDispute(dispute, outcome)
    await this.told.settled()
  }

  /** Past the checkout, as two pages that are filled in at once. `customer`: the account, or Stripe's id of it. */
  async createSecondSubscription(customer: string, offerId: string): Promise<string> {
    const { id, metadata } = this.#customer(customer)
    return await this.createSubscription(id, offerId, {
      penstock_customer: metadata.penstock_customer ?? customer,
    })
  }

  /** One that says what it likes. `customer`: Stripe's id. */
  async createSubscription(
    customer: string,
    offerId: string,
    metadata: Record<string, string>,
  ): Promise<string> {
    const price = this.#price(offerId)
    const { currency } = price
    const amount = amountIn(price, currency)
    const begun = this.subscriptions.begin({ customer, price, currency, metadata, amount, tax: 0 })
    this.subscriptions.pay(begun)
    await this.told.settled()
    return begun.id
  }

  /** A subscription that somebody else sells to somebody else, by the same account of Stripe. */
  async strangerEvent(): Promise<string> {
    const price = this.sell({ amounts: { usd: 700 }, recurring: 'month' })
    return await this.createSubscription(newCustomer(this.store, {}).id, price.id, {})
  }

  /** Oldest first. */
  events(): Stripe.Event[] {
    return this.store.list('events').reverse()
  }

  /** Tells it once more. */
  async repeat(eventId: string): Promise<void> {
    this.told.post(this.store.get('events', eventId).id)
    await this.told.settled()
  }

  /** From now on events are not told, or told again; those that were lost stay lost. */
  losing(isLosing: boolean): void {
    this.told.losing = isLosing
  }

  /** A request with the event as the endpoint gets it. */
  signed(eventId: string): Signed {
    return this.told.signed(this.store.get('events', eventId))
  }

  /** Writes fields of an object that nothing here would write. Tells nothing. */
  alter<K extends Kind>(kind: K, id: string, fields: Partial<Tables[K]>): void {
    Object.assign(this.store.get(kind, id), fields)
  }

  /** Cuts every connection. Throws when an object that it showed was not as Stripe's document says. */
  async stop(): Promise<void> {
    await this.told.settled()
    await this.api.stop()
    const faults = new Set(this.#judgedLater.flatMap((shown) => this.#schema?.faults(shown) ?? []))
    if (faults.size > 0) throw new Error(`the double is not like Stripe: ${[...faults].join('\n')}`)
  }

  /** For tests that showed what Stripe would not: nothing shown until now is judged. */
  forgiveShown(): void {
    this.#judgedLater.length = 0
  }

  #price(offerId: string): Stripe.Price {
    const named = this.store.list('prices').find(({ lookup_key }) => lookup_key === offerId)
    return named ?? this.store.get('prices', offerId)
  }

  #customer(customer: string): Stripe.Customer {
    const named = this.store.list('customers').find(({ metadata }) => metadata.penstock_customer === customer)
    return named ?? this.store.get('customers', customer)
  }

  #shown(object: object, expand: readonly string[] = []): object {
    const shown = this.#rendering.show(object, expand)
    if (this.#rendering.version === 'old') return this.#inOldVersion(shown)
    if (this.#schema !== undefined) this.#judgedLater.push(shown)
    return shown
  }

  #inOldVersion(shown: object): object {
    const payments = this.store.list('invoicePayments')
    return inOldVersion(
      shown,
      (id) => this.#rendering.show(this.store.get('prices', id)),
      (id) => payments.find(({ invoice }) => invoice === id)?.payment.payment_intent,
    ) as object
  }
}
