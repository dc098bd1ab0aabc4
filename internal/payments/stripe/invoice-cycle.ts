/** The period that an invoice of a subscription pays for, by its lines. */

import type Stripe from 'stripe'
import type { CataloguePlan } from '../../billing/catalogue.ts'
import { type InvoiceReading, UnusableReadingError } from '../../billing/readings.ts'
import { idOf, msOf, orMissing } from './client.ts'
import { namesOf, type PriceNames, planOf, requirePlan } from './offers.ts'
import type { Reader } from './subscription-reading.ts'

/** Where API versions before 2025-03-31 have what this one has in `parent` and `pricing`. */
type LineOfAnyVersion = Stripe.InvoiceLineItem & {
  type?: string
  proration?: boolean
  price?: Stripe.Price | null
}

/** What bills whole periods. Whatever else is billed pays for none. */
const BEGINS_PERIOD = ['subscription_create', 'subscription_cycle']
/** Bills the difference of a plan that changes, or a whole period where that begins a new one, as from months to years. */
const MAY_BEGIN_PERIOD = 'subscription_update'
/** Lines that an invoice itself shows. */
const MOST_LINES = 250

/** Rejects with UnusableReadingError when a period is paid for, and no plan of the catalogue is. */
export async function cycleOf(reader: Reader, invoice: Stripe.Invoice): Promise<InvoiceReading['cycle']> {
  const reason = invoice.billing_reason ?? ''
  if (reason !== MAY_BEGIN_PERIOD && !BEGINS_PERIOD.includes(reason)) return null
  const [lines, plans] = await Promise.all([linesOf(reader.stripe, invoice), reader.plans()])
  const wholes = lines.filter(isWholePeriod)
  const line = wholes.find((each) => planOf(plans, lineNames(each)) !== undefined) ?? wholes[0]
  if (line === undefined && reason === MAY_BEGIN_PERIOD) return null
  if (line === undefined) throw new UnusableReadingError(`the invoice ${invoice.id} pays for no period`)
  return {
    planId: await planOfLine(reader.stripe, plans, line),
    periodStart: msOf(line.period.start),
    periodEnd: msOf(line.period.end),
  }
}

async function linesOf(stripe: Stripe, { id, lines }: Stripe.Invoice): Promise<LineOfAnyVersion[]> {
  if (!lines.has_more) return lines.data
  return await stripe.invoices.listLineItems(id, { limit: 100 }).autoPagingToArray({ limit: MOST_LINES })
}

function isWholePeriod({ parent, type, proration }: LineOfAnyVersion): boolean {
  if (parent === null || parent === undefined) return type === 'subscription' && proration !== true
  return parent.subscription_item_details != null && !parent.subscription_item_details.proration
}

/** Its lookup key stands on the price alone, which newer versions only name. */
function lineNames({ pricing, price }: LineOfAnyVersion): PriceNames {
  const details = pricing?.price_details
  const whole = typeof details?.price === 'object' ? details.price : price
  if (whole) return namesOf(whole)
  return { id: idOf(details?.price) ?? '', lookupKey: null, product: details?.product }
}

async function planOfLine(
  stripe: Stripe,
  plans: readonly CataloguePlan[],
  line: LineOfAnyVersion,
): Promise<string> {
  const names = lineNames(line)
  const known = planOf(plans, names)
  if (known !== undefined) return known
  if (names.id === '') throw new UnusableReadingError('a line of a subscription has no price')
  const price = await orMissing(stripe.prices.retrieve(names.id))
  return await requirePlan(stripe, plans, price === undefined ? names : namesOf(price))
}
