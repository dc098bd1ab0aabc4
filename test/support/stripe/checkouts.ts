/** Checkout pages of the double: what customers do there. */

import type Stripe from 'stripe'
import type { Money } from './money.ts'
import { newPaymentIntent } from './payment-objects.ts'
import type { Store } from './store.ts'
import { amountIn, type Subscriptions } from './subscriptions.ts'
import type { Told } from './told.ts'

export type Outcome = 'pays' | 'pays-late' | 'fails' | 'abandons'

export interface Choice {
  /** Without tax; another amount than the price's stands for a coupon. */
  amountInCents?: number
  /** On top of it. */
  taxInCents?: number
  /** In lower case; default: the price's own. */
  currency?: string
}

export class Checkouts {
  readonly #store: Store
  readonly #told: Told
  readonly #money: Money
  readonly #subscriptions: Subscriptions
  /** Prices and subscription metadata, by session: Stripe shows them on neither. */
  readonly prices = new Map<string, Stripe.Price>()
  readonly subscriptionMetadata = new Map<string, Record<string, string>>()
  /** Completed, and not paid yet. */
  readonly #late = new Set<string>()

  constructor(store: Store, told: Told, money: Money, subscriptions: Subscriptions) {
    this.#store = store
    this.#told = told
    this.#money = money
    this.#subscriptions = subscriptions
  }

  choose(session: Stripe.Checkout.Session, outcome: Outcome, choice: Choice): void {
    if (session.status !== 'open') throw new Error(`the checkout ${session.id} is ${session.status}`)
    if (outcome === 'abandons') this.expire(session)
    else {
      this.#complete(session, choice)
      if (outcome === 'pays') this.#pay(session)
      this.#told.tell('checkout.session.completed', session)
      if (outcome === 'pays-late') this.#late.add(session.id)
      if (outcome === 'fails') this.#fail(session)
    }
  }

  /** What was to be paid later is paid now. */
  settleLate(): void {
    for (const id of this.#late) {
      const session = this.#store.get('sessions', id)
      this.#pay(session)
      this.#told.tell('checkout.session.async_payment_succeeded', session)
    }
    this.#late.clear()
  }

  expire(session: Stripe.Checkout.Session): void {
    Object.assign(session, { status: 'expired', url: null })
    this.#told.tell('checkout.session.expired', session)
  }

  /** The customer has decided, and the money has not come. */
  #complete(session: Stripe.Checkout.Session, choice: Choice): void {
    const price = this.prices.get(session.id)!
    const currency = choice.currency ?? price.currency
    const { amountInCents: amount = amountIn(price, currency), taxInCents: tax = 0 } = choice
    Object.assign(session, {
      status: 'complete',
      url: null,
      currency,
      amount_subtotal: amountIn(price, currency),
      amount_total: amount + tax,
      total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: tax },
    })
    const customer = String(session.customer)
    const metadata = this.subscriptionMetadata.get(session.id) ?? {}
    if (session.mode === 'subscription') {
      const begun = this.#subscriptions.begin({ customer, price, currency, metadata, amount, tax })
      Object.assign(session, { subscription: begun.id, invoice: begun.latest_invoice })
    } else if (amount + tax > 0) {
      const made = { amount: amount + tax, currency, customer, metadata: { ...session.metadata } }
      session.payment_intent = newPaymentIntent(this.#store, made).id
    }
  }

  #pay(session: Stripe.Checkout.Session): void {
    if (session.mode === 'payment') this.#money.payPack(session)
    else {
      this.#subscriptions.pay(this.#store.get('subscriptions', session.subscription))
      session.payment_status = session.amount_total === 0 ? 'no_payment_required' : 'paid'
    }
  }

  #fail(session: Stripe.Checkout.Session): void {
    if (session.mode === 'subscription') {
      this.#subscriptions.giveUp(this.#store.get('subscriptions', session.subscription))
    } else if (session.payment_intent !== null) {
      this.#store.get('paymentIntents', session.payment_intent).status = 'requires_payment_method'
    }
    this.#told.tell('checkout.session.async_payment_failed', session)
  }
}
