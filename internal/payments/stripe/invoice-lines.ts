/** Lines of an invoice of a subscription, wherever API versions have their parts. */

import type Stripe from 'stripe'
import { idOf } from './client.ts'
import { namesOf, type PriceNames } from './offers.ts'

/** Where API versions before 2025-03-31 have what this one has in `parent` and `pricing`. */
export type LineOfAnyVersion = Stripe.InvoiceLineItem & {
  type?: string
  proration?: boolean
  proration_details?: { credited_items?: unknown } | null
  price?: Stripe.Price | null
}

/** Lines that an invoice itself shows. */
const MOST_LINES = 250

export async function linesOf(stripe: Stripe, { id, lines }: Stripe.Invoice): Promise<LineOfAnyVersion[]> {
  if (!lines.has_more) return lines.data
  return await stripe.invoices.listLineItems(id, { limit: 100 }).autoPagingToArray({ limit: MOST_LINES })
}

/** It bills a period from its begin. */
export function isWholePeriod({ parent, type, proration }: LineOfAnyVersion): boolean {
  if (parent === null || parent === undefined) return type === 'subscription' && proration !== true
  return parent.subscription_item_details != null && !parent.subscription_item_details.proration
}

/** It bills, or gives back, what is left of a period. An invoice item of its own may do so, too. */
export function isProration({ parent, proration }: LineOfAnyVersion): boolean {
  if (parent === null || parent === undefined) return proration === true
  return (parent.subscription_item_details ?? parent.invoice_item_details)?.proration === true
}

/** Whether a proration gives back: of a price that is 0, only the lines that it credits tell. */
export function givesBack({ amount, parent, proration_details }: LineOfAnyVersion): boolean {
  const details = parent?.subscription_item_details ?? parent?.invoice_item_details
  return amount < 0 || (details?.proration_details ?? proration_details)?.credited_items != null
}

/** In cents, after coupons. */
export function netOf({ amount, discount_amounts }: LineOfAnyVersion): number {
  return (discount_amounts ?? []).reduce((left, discount) => left - discount.amount, amount)
}

/** Its lookup key stands on the price alone, which newer versions only name. */
export function lineNames({ pricing, price }: LineOfAnyVersion): PriceNames {
  const details = pricing?.price_details
  const whole = typeof details?.price === 'object' ? details.price : price
  if (whole) return namesOf(whole)
  return { id: idOf(details?.price) ?? '', lookupKey: null, product: details?.product }
}
