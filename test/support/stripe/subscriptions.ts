/** Subscriptions of the double: begun, renewed, changed and ended, each with its invoices and events. */

import type Stripe from 'stripe'
import { type NewLine, newInvoice } from './invoice-objects.ts'
import type { Money } from './money.ts'
import { itemOf, newSubscription } from './objects.ts'
import { nextPrice } from './schedules.ts'
import type { Store } from './store.ts'
import type { Told } from './told.ts'

export interface Begun {
  customer: string
  price: Stripe.Price
  currency: string
  metadata: Record<string, string>
  /** Of the first invoice, in cents: without tax, and the tax. */
  amount: number
  tax: number
}

/** What becomes of the difference that another plan costs. */
export type ChangeOutcome = 'pays' | 'pays-late' | 'fails'

export class Subscriptions {
  readonly #store: Store
  readonly #told: Told
  readonly #money: Money
  /** Their next renewal fails. */
  readonly #failing = new Set<string>()
  /** Differences of a plan that are paid later. */
  readonly #late = new Set<Stripe.Invoice>()

  constructor(store: Store, told: Told, money: Money) {
    this.#store = store
    this.#told = told
    this.#money = money
  }

  /** It waits for its first payment. */
  begin({ amount, tax, ...made }: Begun): Stripe.Subscription {
    const now = this.#store.now()
    const periodEnd = periodAfter(now, made.price)
    const subscription = newSubscription(this.#store, { ...made, status: 'incomplete', periodEnd })
    const line = { price: made.price, amount, start: now, end: periodEnd, proration: false }
    this.#bill(subscription, 'subscription_create', [line], tax)
    this.#told.tell('customer.subscription.created', subscription)
    this.#told.tell('invoice.finalized', this.latestInvoice(subscription))
    return subscription
  }

  latestInvoice({ latest_invoice }: Stripe.Subscription): Stripe.Invoice {
    return this.#store.get('invoices', latest_invoice)
  }

  /** Pays what is open, and thereby brings it to life. */
  pay(subscription: Stripe.Subscription): void {
    for (const invoice of this.#openInvoices(subscription)) this.payInvoice(invoice)
    subscription.status = 'active'
    this.#told.tell('customer.subscription.updated', subscription)
  }

  /** The first payment never came. */
  giveUp(subscription: Stripe.Subscription): void {
    for (const invoice of this.#openInvoices(subscription)) {
      this.#told.tell('invoice.payment_failed', invoice)
      this.voidInvoice(invoice)
    }
    Object.assign(subscription, { status: 'incomplete_expired', ended_at: this.#store.now() })
    this.#told.tell('customer.subscription.updated', subscription)
  }

  failNextRenewal(subscriptionId: string): void {
    this.#failing.add(this.#store.get('subscriptions', subscriptionId).id)
  }

  cancelAtPeriodEnd(subscription: Stripe.Subscription, comment: string | undefined): void {
    Object.assign(subscription, {
      cancel_at_period_end: true,
      cancel_at: itemOf(subscription).current_period_end,
      canceled_at: this.#store.now(),
      cancellation_details: { comment: comment ?? null, feedback: null, reason: 'cancellation_requested' },
    })
    this.#told.tell('customer.subscription.updated', subscription)
  }

  cancelNow(subscription: Stripe.Subscription, comment?: string): void {
    const now = this.#store.now()
    Object.assign(subscription, { status: 'canceled', canceled_at: now, ended_at: now })
    if (comment !== undefined) Object.assign(subscription.cancellation_details!, { comment })
    this.#told.tell('customer.subscription.deleted', subscription)
  }

  takeBack(subscription: Stripe.Subscription): void {
    Object.assign(subscription, { cancel_at_period_end: false, cancel_at: null, canceled_at: null })
    if (this.#openInvoices(subscription).length > 0) this.pay(subscription)
    else this.#told.tell('customer.subscription.updated', subscription)
  }

  /** Bills the difference for the rest of the period at once; what becomes of that is `outcome`. */
  changePlan(
    subscription: Stripe.Subscription,
    price: Stripe.Price,
    outcome: ChangeOutcome = 'pays',
  ): Stripe.Invoice {
    const item = itemOf(subscription)
    const { current_period_start: start, current_period_end: end } = item
    const now = this.#store.now()
    const left = (end - now) / (end - start)
    const before = Math.round(amountIn(item.price, subscription.currency) * left)
    const after = Math.round(amountIn(price, subscription.currency) * left)
    const rest = { start: now, end, proration: true }
    const lines = [
      { price: item.price, amount: -before, ...rest, credits: this.latestInvoice(subscription) },
      { price, amount: after, ...rest },
    ]
    item.price = price
    const invoice = this.#bill(subscription, 'subscription_update', lines, 0)
    if (outcome === 'pays') this.#money.payInvoice(invoice)
    this.#told.tell('customer.subscription.updated', subscription)
    this.#told.tell('invoice.finalized', invoice)
    if (outcome === 'pays') this.#told.tell('invoice.paid', invoice)
    if (outcome === 'fails') this.voidInvoice(invoice)
    if (outcome === 'pays-late') this.#late.add(invoice)
    return invoice
  }

  /** What was to be paid later is paid now. */
  settleLate(): void {
    for (const invoice of this.#late) this.payInvoice(invoice)
    this.#late.clear()
  }

  payInvoice(invoice: Stripe.Invoice): void {
    this.#money.payInvoice(invoice)
    this.#told.tell('invoice.paid', invoice)
  }

  voidInvoice(invoice: Stripe.Invoice): void {
    invoice.status = 'void'
    invoice.status_transitions.voided_at = this.#store.now()
    this.#told.tell('invoice.voided', invoice)
  }

  /** Renews and ends, in order, whose period is over until then; the clock stands there afterwards. */
  advanceTo(until: number): void {
    for (;;) {
      const due = this.#store
        .list('subscriptions')
        .filter((each) => ['active', 'past_due', 'trialing'].includes(each.status))
        .map((subscription) => ({ subscription, end: itemOf(subscription).current_period_end }))
        .filter(({ end }) => end <= until)
        .sort((a, b) => a.end - b.end)[0]
      if (due === undefined) break
      this.#store.moveTo(due.end)
      if (due.subscription.cancel_at_period_end || due.subscription.cancel_at)
        this.cancelNow(due.subscription)
      else this.#renew(due.subscription)
    }
    this.#store.moveTo(until)
  }

  #renew(subscription: Stripe.Subscription): void {
    const item = itemOf(subscription)
    item.price = nextPrice(this.#store, subscription) ?? item.price
    const start = item.current_period_end
    const end = periodAfter(start, item.price)
    Object.assign(item, { current_period_start: start, current_period_end: end })
    const amount = amountIn(item.price, subscription.currency)
    const line = { price: item.price, amount, start, end, proration: false }
    const invoice = this.#bill(subscription, 'subscription_cycle', [line], 0)
    const fails = this.#failing.delete(subscription.id)
    if (fails) Object.assign(invoice, { attempted: true, attempt_count: 1 })
    else this.#money.payInvoice(invoice)
    subscription.status = fails ? 'past_due' : 'active'
    this.#told.tell('invoice.finalized', invoice)
    this.#told.tell(fails ? 'invoice.payment_failed' : 'invoice.paid', invoice)
    this.#told.tell('customer.subscription.updated', subscription)
  }

  #bill(
    subscription: Stripe.Subscription,
    reason: Stripe.Invoice.BillingReason,
    lines: readonly NewLine[],
    tax: number,
  ): Stripe.Invoice {
    const invoice = newInvoice(this.#store, { subscription, reason, lines, tax })
    subscription.latest_invoice = invoice.id
    return invoice
  }

  #openInvoices({ id }: Stripe.Subscription): Stripe.Invoice[] {
    return this.#store
      .list('invoices')
      .filter(({ parent, status }) => status === 'open' && parent?.subscription_details?.subscription === id)
  }
}

/** In cents. Throws for a currency that the price does not have. */
export function amountIn({ id, currency_options }: Stripe.Price, currency: string): number {
  const amount = currency_options?.[currency]?.unit_amount
  if (amount === undefined || amount === null) throw new Error(`${id} has no price in ${currency}`)
  return amount
}

/** Unix seconds: a calendar month or year later, on the last day of a shorter month. */
function periodAfter(seconds: number, { recurring }: Stripe.Price): number {
  const start = new Date(seconds * 1_000)
  const end = new Date(start)
  end.setUTCDate(1)
  end.setUTCMonth(end.getUTCMonth() + (recurring?.interval === 'year' ? 12 : 1))
  const days = new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth() + 1, 0)).getUTCDate()
  end.setUTCDate(Math.min(start.getUTCDate(), days))
  return end.getTime() / 1_000
}
