/** Stripe's checkout pages: one for a plan, one for a pack. */

import type Stripe from 'stripe'
import type { Checkout } from '../../billing/ports.ts'
import { type Connection, idempotencyKey, msOf } from './client.ts'
import { type CustomerOptions, requireCustomer } from './customers.ts'
import { CUSTOMER, PACK, PLAN, PRICE } from './metadata.ts'
import { findPrice, isSold } from './offers.ts'

type Session = Stripe.Checkout.Session
type CreateParams = Stripe.Checkout.SessionCreateParams

/** A page that ends sooner is not shown again, ms: somebody has to fill it in. */
const STILL_USABLE_MS = 600_000

export interface CheckoutOptions extends CustomerOptions {
  returnUrl: string
}

/** The page's URL; undefined: there is no such offer, or it is not sold. */
export async function checkoutUrl(options: CheckoutOptions, checkout: Checkout): Promise<string | undefined> {
  const { connection } = options
  const { customerId, offerId, buys } = checkout
  if (offerId === null) return undefined
  const price = await findPrice(connection.stripe, offerId)
  if (price === undefined || !isSold(price, buys)) return undefined
  const customer = await requireCustomer(options, customerId)
  const wanted = paramsOf(options, checkout, { customer, price: price.id })
  const made = await sessionsFor(connection.stripe, wanted)
  const open = made.find((session) => isOpen(session, connection.clock.now()))
  return open?.url ?? (await makeSession(connection, wanted, made[0]))
}

/** Those of the same customer and price, newest first, whatever became of them. */
async function sessionsFor(stripe: Stripe, { customer, metadata }: CreateParams): Promise<Session[]> {
  const { data } = await stripe.checkout.sessions.list({ customer: customer!, limit: 100 })
  const wanted = Object.entries(metadata as Record<string, string>)
  return data.filter((session) => wanted.every(([name, value]) => session.metadata?.[name] === value))
}

function isOpen({ status, url, expires_at }: Session, now: number): boolean {
  return status === 'open' && url !== null && msOf(expires_at) > now + STILL_USABLE_MS
}

/** Two requests at once make one page: both know the same last one. */
async function makeSession(
  { stripe, clock }: Connection,
  params: CreateParams,
  last: Session | undefined,
): Promise<string> {
  const key = idempotencyKey(clock, 'checkout', params, last?.id, last?.status)
  const { id, url } = await stripe.checkout.sessions.create(params, { idempotencyKey: key })
  if (url === null) throw new Error(`Stripe made the checkout ${id} without a page`)
  return url
}

function paramsOf(
  { returnUrl }: CheckoutOptions,
  checkout: Checkout,
  { customer, price }: { customer: string; price: string },
): CreateParams {
  const { customerId, buys } = checkout
  const metadata: Record<string, string> =
    buys === 'plan'
      ? { [CUSTOMER]: customerId, [PLAN]: checkout.planId }
      : { [CUSTOMER]: customerId, [PACK]: checkout.packId }
  return {
    customer,
    line_items: [{ price, quantity: 1 }],
    metadata: { ...metadata, [PRICE]: price },
    client_reference_id: customerId,
    success_url: returnUrl,
    cancel_url: returnUrl,
    // The price has its own amounts in each currency. Credits are granted for these, not for a converted one.
    adaptive_pricing: { enabled: false },
    ...(buys === 'plan'
      ? { mode: 'subscription' as const, subscription_data: { metadata } }
      : {
          mode: 'payment' as const,
          payment_intent_data: { metadata },
          invoice_creation: { enabled: true, invoice_data: { metadata } },
        }),
  }
}
