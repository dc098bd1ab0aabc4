/** The double's objects as Stripe shows them: what is asked for expanded, what is not asked for left out. */

import type Stripe from 'stripe'
import { listOf } from './objects.ts'
import type { Kind, Store } from './store.ts'

type Shown = Record<string, unknown>

/** Fields that hold an id, and may be shown whole. */
const REFERENCES: Readonly<Record<string, Kind>> = {
  payment_intent: 'paymentIntents',
  latest_charge: 'charges',
  charge: 'charges',
  invoice: 'invoices',
  latest_invoice: 'invoices',
  product: 'products',
  customer: 'customers',
  subscription: 'subscriptions',
}

/** An invoice itself shows so many lines. */
const LINES = 10

export class Rendering {
  /** Old: fields stand where API versions before 2025-03-31 have them. */
  version: 'new' | 'old' = 'new'
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** A copy, with what `paths` name. Throws for a path that cannot be expanded. */
  show(object: object, paths: readonly string[] = []): Shown {
    const shown = this.#stripped(structuredClone(object) as Shown)
    if (shown.object === 'invoice') shown.lines = firstLines(shown.lines as Stripe.ApiList<unknown>)
    for (const path of paths) {
      if (path.split('.').length > 4) throw new Error(`You cannot expand more than 4 levels: ${path}`)
      this.#expand(shown, path.split('.'))
    }
    return shown
  }

  #expand(shown: Shown, [name, ...rest]: readonly string[]): void {
    if (name === undefined) return
    if (name === 'payments' && shown.object === 'invoice') shown.payments = this.#paymentsOf(shown)
    else if (name === 'currency_options' && shown.object === 'price') {
      shown.currency_options = this.#store.get('prices', shown.id).currency_options
    } else if (typeof shown[name] === 'string' && Object.hasOwn(REFERENCES, name)) {
      shown[name] = this.show(this.#store.get(REFERENCES[name]!, shown[name]))
    } else if (!(name in shown)) {
      throw new Error(`This property cannot be expanded (${name})`)
    }
    const next = shown[name]
    if (Array.isArray(next)) for (const each of next) this.#expand(each as Shown, rest)
    else if (typeof next === 'object' && next !== null) this.#expand(next as Shown, rest)
  }

  #paymentsOf({ id }: Shown): Stripe.ApiList<unknown> {
    const payments = this.#store.list('invoicePayments').filter(({ invoice }) => invoice === id)
    return listOf(structuredClone(payments), '/v1/invoice_payments')
  }

  /** Prices show their currencies only when they are asked for; also where they stand in an item. */
  #stripped(shown: Shown): Shown {
    if (shown.object === 'price') delete shown.currency_options
    for (const value of Object.values(shown)) {
      if (typeof value === 'object' && value !== null) this.#stripped(value as Shown)
    }
    return shown
  }
}

function firstLines(lines: Stripe.ApiList<unknown>): Stripe.ApiList<unknown> {
  return { ...lines, data: lines.data.slice(0, LINES), has_more: lines.data.length > LINES }
}
