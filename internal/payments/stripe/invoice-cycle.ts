/** What an invoice of a subscription pays for, by its lines: a period, and changes of the plan within one. */

import type Stripe from 'stripe'
import type { CataloguePlan } from '../../billing/catalogue.ts'
import { type InvoiceReading, type PaidCycle, UnusableReadingError } from '../../billing/readings.ts'
import { msOf, orMissing } from './client.ts'
import { changesOf } from './invoice-changes.ts'
import {
  isProration,
  isWholePeriod,
  type LineOfAnyVersion,
  lineNames,
  linesOf,
  netOf,
} from './invoice-lines.ts'
import { namesOf, planOf, requirePlan } from './offers.ts'
import type { Reader } from './subscription-reading.ts'

/** What bills whole periods. Whatever else is billed, as by hand, pays for none, and may bill a change. */
const BEGINS_PERIOD = ['subscription_create', 'subscription_cycle']
/** Bills the difference of a plan that changes, or a whole period where that begins a new one, as from months to years. */
const MAY_BEGIN_PERIOD = 'subscription_update'

/** Rejects with UnusableReadingError when a period is paid for, and no plan of the catalogue is. */
export async function paidFor(
  reader: Reader,
  invoice: Stripe.Invoice,
): Promise<Pick<InvoiceReading, 'cycle' | 'changes'>> {
  const reason = invoice.billing_reason ?? ''
  const { stripe } = reader
  const [lines, plans] = await Promise.all([linesOf(stripe, invoice), reader.plans()])
  const hasCycle = reason === MAY_BEGIN_PERIOD || BEGINS_PERIOD.includes(reason)
  const cycle = hasCycle ? await cycleOf(stripe, plans, { id: invoice.id, reason, lines }) : null
  return { cycle, changes: await changesOf(stripe, plans, lines) }
}

async function cycleOf(
  stripe: Stripe,
  plans: readonly CataloguePlan[],
  { id, reason, lines }: { id: string; reason: string; lines: LineOfAnyVersion[] },
): Promise<PaidCycle | null> {
  const wholes = lines.filter(isWholePeriod)
  const line = wholes.find((each) => planOf(plans, lineNames(each)) !== undefined) ?? wholes[0]
  if (line === undefined && reason === MAY_BEGIN_PERIOD) return null
  if (line === undefined) throw new UnusableReadingError(`the invoice ${id} pays for no period`)
  return {
    planId: await planOfLine(stripe, plans, line),
    periodStart: msOf(line.period.start),
    periodEnd: msOf(line.period.end),
    newMoney: reason === MAY_BEGIN_PERIOD ? newMoneyOf(line, lines) : null,
  }
}

/**
 * A period that begins with another plan is paid with what is left of the period before it, first of all. That has brought
 * its credits.
 */
function newMoneyOf(line: LineOfAnyVersion, lines: readonly LineOfAnyVersion[]): PaidCycle['newMoney'] {
  const priceInCents = netOf(line)
  const givenBack = -lines.filter(isProration).reduce((sum, each) => sum + netOf(each), 0)
  if (priceInCents <= 0 || givenBack <= 0) return null
  return { paidInCents: Math.max(0, priceInCents - givenBack), priceInCents }
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
