/** Stripe's API, as far as the adapter asks for it. */

import type Stripe from 'stripe'
import type { Checkouts } from './checkouts.ts'
import { type Form, inner, metadataIn, text, texts } from './form.ts'
import type { Money } from './money.ts'
import { newCustomer, newSession } from './objects.ts'
import { newConfiguration, newEndpoint, newPortalSession } from './portal-objects.ts'
import { release } from './schedules.ts'
import { KINDS, type Kind, MissingError, type Store } from './store.ts'
import { amountIn, type Subscriptions } from './subscriptions.ts'
import type { Told } from './told.ts'

export interface Parts {
  store: Store
  money: Money
  subscriptions: Subscriptions
  checkouts: Checkouts
  told: Told
  /** The double's own address. */
  origin: string
}

/** What Stripe refuses, as its 400. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly code: string | undefined

  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

export type Answer = { object: object } | { list: object[]; url: string }

const ROUTE = /^\/v1\/((?:checkout\/|billing_portal\/)?[a-z_]+)(?:\/([A-Za-z0-9_-]+))?(?:\/([a-z_]+))?$/
const kindsByPath = new Map(Object.entries(KINDS).map(([kind, { path }]) => [path, kind as Kind]))

export function answer(parts: Parts, method: string, path: string, form: Form): Answer | undefined {
  const [, place = '', id, part] = ROUTE.exec(path) ?? []
  const kind = kindsByPath.get(place)
  if (kind === undefined) return undefined
  const { store } = parts
  if (method === 'GET' && part === 'lines' && kind === 'invoices') {
    return { list: store.get('invoices', id).lines.data, url: path }
  }
  if (method === 'POST' && part === 'release' && kind === 'schedules') {
    const made = store.get('schedules', id)
    if (made.status !== 'active') throw new RefusedError(`The schedule ${made.id} is ${made.status}.`)
    release(store, parts.told, made)
    return { object: made }
  }
  if (part !== undefined) return undefined
  if (method === 'GET')
    return id === undefined ? listed(store, kind, form, path) : { object: store.get(kind, id) }
  if (method === 'DELETE' && kind === 'subscriptions') return { object: cancelled(parts, id, form) }
  if (method !== 'POST') return undefined
  const made = id === undefined ? make(parts, kind, form) : change(parts, kind, id, form)
  return made && { object: made }
}

function make(parts: Parts, kind: Kind, form: Form): object | undefined {
  const { store, money, origin } = parts
  switch (kind) {
    case 'customers':
      return newCustomer(store, {
        description: text(form, 'description') ?? null,
        metadata: metadataIn(form),
      })
    case 'sessions':
      return makeSession(parts, form)
    case 'refunds':
      return money.refund(refundable(store, form))
    case 'configurations':
      return newConfiguration(store, form)
    case 'portalSessions':
      return newPortalSession(store, form, origin)
    case 'endpoints':
      return { ...newEndpoint(store, form), secret: `whsec_${store.newId('endpoints')}` }
    default:
      return undefined
  }
}

function change({ store, subscriptions }: Parts, kind: Kind, id: string, form: Form): object | undefined {
  if (kind === 'endpoints') {
    const events = texts(form, 'enabled_events')
    const fields = { ...(events.length > 0 && { enabled_events: events }) }
    const isDisabled = text(form, 'disabled')
    const status = isDisabled === undefined ? {} : { status: isDisabled === 'true' ? 'disabled' : 'enabled' }
    return Object.assign(store.get('endpoints', id), fields, status)
  }
  if (kind !== 'subscriptions') return undefined
  const subscription = store.get('subscriptions', id)
  if (['canceled', 'incomplete_expired'].includes(subscription.status)) {
    throw new RefusedError('A canceled subscription can only update its cancellation_details and metadata.')
  }
  if (subscription.schedule) {
    throw new RefusedError(
      `The subscription is managed by the subscription schedule \`${subscription.schedule}\`, and updating any ` +
        'cancelation behavior directly is not allowed. Please update the schedule instead.',
    )
  }
  if (text(form, 'cancel_at_period_end') === 'true') {
    subscriptions.cancelAtPeriodEnd(subscription, text(inner(form, 'cancellation_details'), 'comment'))
  }
  return subscription
}

/** One that has ended is as unknown as one that never was. */
function cancelled({ store, subscriptions }: Parts, id: string | undefined, form: Form): object {
  const subscription = store.get('subscriptions', id)
  if (['canceled', 'incomplete_expired'].includes(subscription.status)) {
    throw new MissingError('subscriptions', subscription.id)
  }
  subscriptions.cancelNow(subscription, text(inner(form, 'cancellation_details'), 'comment'))
  return subscription
}

function makeSession({ store, checkouts, origin }: Parts, form: Form): Stripe.Checkout.Session {
  const price = store.get('prices', text(Object.values(inner(form, 'line_items'))[0] as Form, 'price'))
  const customer = store.payer(text(form, 'customer'))
  const mode = text(form, 'mode')
  if ((mode === 'subscription') !== (price.recurring !== null)) {
    throw new RefusedError(`You specified \`${mode}\` mode but passed another kind of price.`)
  }
  const amount = amountIn(price, price.currency)
  const session = newSession(store, {
    customer: customer.id,
    mode: mode as Stripe.Checkout.Session.Mode,
    metadata: metadataIn(form),
    adaptive_pricing: { enabled: text(inner(form, 'adaptive_pricing'), 'enabled') !== 'false' },
    client_reference_id: text(form, 'client_reference_id') ?? null,
    success_url: text(form, 'success_url') ?? null,
    cancel_url: text(form, 'cancel_url') ?? null,
    currency: price.currency,
    amount_subtotal: amount,
    amount_total: amount,
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
  })
  session.url = `${origin}/pay/${session.id}`
  checkouts.prices.set(session.id, price)
  checkouts.subscriptionMetadata.set(session.id, metadataIn(inner(form, 'subscription_data')))
  return session
}

function refundable(store: Store, form: Form): Stripe.Charge {
  const intent = text(form, 'payment_intent')
  const id = intent === undefined ? text(form, 'charge') : store.get('paymentIntents', intent).latest_charge
  const charge = store.get('charges', id)
  if (charge.disputed) throw new RefusedError(`Charge ${charge.id} has been charged back.`, 'charge_disputed')
  if (charge.refunded) {
    throw new RefusedError(`Charge ${charge.id} has already been refunded.`, 'charge_already_refunded')
  }
  return charge
}

/** What lists can be narrowed by. Anything else is an unknown parameter. */
function listed(store: Store, kind: Kind, form: Form, url: string): Answer {
  const filters = Object.entries(form).filter(
    ([name]) => !['limit', 'starting_after', 'expand'].includes(name),
  )
  const list = filters.reduce<object[]>(
    (left, [name, value]) => left.filter((object) => fits(object as Record<string, unknown>, name, value)),
    store.list(kind),
  )
  const isAllStates = kind !== 'subscriptions' || text(form, 'status') !== undefined
  return {
    url,
    list: isAllStates ? list : list.filter((each) => (each as { status: string }).status !== 'canceled'),
  }
}

function fits(object: Record<string, unknown>, name: string, value: string | Form): boolean {
  if (name === 'created') return Number(object.created) >= Number(text(value as Form, 'gte') ?? 0)
  if (name === 'types') return Object.values(value as Form).includes(String(object.type))
  if (name === 'lookup_keys') return Object.values(value as Form).includes(String(object.lookup_key))
  if (name === 'payment') {
    const { payment_intent } = object.payment as { payment_intent?: string }
    return payment_intent === text(value as Form, 'payment_intent')
  }
  if (name === 'status' && value === 'all') return true
  if (name === 'subscription' && object.object === 'invoice') {
    const { parent } = object as unknown as Stripe.Invoice
    return parent?.subscription_details?.subscription === value
  }
  if (!(name in object)) throw new RefusedError(`Received unknown parameter: ${name}`, 'parameter_unknown')
  return `${object[name]}` === value
}
