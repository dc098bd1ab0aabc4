/** The credits that a paid invoice of a subscription brings (docs/architecture/billing.md, "Credits of a period"). */

import type { Subscription } from '../domain/model.ts'
import { proportion } from '../domain/proportion.ts'
import { broughtBefore, upgradeCredits } from '../domain/subscription.ts'
import { planOf } from './apply-subscription.ts'
import type { BillingTransaction } from './ports.ts'
import type { InvoiceReading, PaidCycle, PlanChange } from './readings.ts'

/** An invoice that is paid, and its subscription as our row has it. */
interface Paid {
  billing: BillingTransaction
  reading: InvoiceReading
  subscription: Subscription
}

/** Once an invoice, and once a period, however many events tell that it is paid. Answers whether it brought any. */
export async function grantInvoice(paid: Paid): Promise<boolean> {
  const { billing, reading } = paid
  const { invoiceId, customerId, cycle, changes } = reading
  if ((await billing.sale(invoiceId)) !== undefined) return false
  const ofCycle = cycle === null ? undefined : await grantCycle(paid, cycle)
  if (ofCycle === undefined && changes.length === 0) return false
  let credits = ofCycle ?? 0
  for (const change of changes) credits += await grantChange(paid, change)
  await billing.beginSale(invoiceId, customerId, credits)
  return credits > 0
}

/** Credits that were granted; undefined: the period was paid for before. */
async function grantCycle(
  { billing, reading, subscription }: Paid,
  cycle: PaidCycle,
): Promise<number | undefined> {
  const { subscriptionId } = reading
  const { planId, periodStart, periodEnd } = cycle
  const { creditsPerCycle, name } = await planOf(billing, planId)
  if ((await billing.cycleCredits(subscriptionId, periodStart)) !== undefined) return undefined
  await billing.putCycleCredits(subscriptionId, { periodStart, periodEnd, credits: creditsPerCycle })
  // A change may be paid before its period.
  const changes = await billing.planChanges(subscriptionId, periodStart)
  const credits = Math.max(
    0,
    creditsOfCycle(cycle, creditsPerCycle) - broughtBefore(creditsPerCycle, changes, cycle),
  )
  await add(billing, reading, { credits, description: `Credits of plan ${name}` })
  const best = Math.max(creditsPerCycle, ...changes.map(({ to }) => to))
  await limit(billing, subscription, { periodStart, creditsPerCycle: best })
  return credits
}

function creditsOfCycle({ newMoney }: PaidCycle, creditsPerCycle: number): number {
  if (newMoney === null) return creditsPerCycle
  return proportion(creditsPerCycle, newMoney.paidInCents, newMoney.priceInCents)
}

/** Credits that were granted: the difference of the plans for the rest of the period, as far as it was not paid before. */
async function grantChange({ billing, reading, subscription }: Paid, change: PlanChange): Promise<number> {
  const { invoiceId, subscriptionId } = reading
  const { changedAt, periodEnd } = change
  const plan = await planOf(billing, change.planId)
  const periodStart = await periodStartOf(billing, subscription, change)
  const ofCycle = await billing.cycleCredits(subscriptionId, periodStart)
  const to = plan.creditsPerCycle
  const from = change.fromPlanId === null ? ofCycle : await creditsOf(billing, change.fromPlanId)
  if (from === undefined) return 0
  const paid = [{ from: 0, to: ofCycle ?? 0 }, ...(await billing.planChanges(subscriptionId, periodStart))]
  const credits = upgradeCredits({ from, to, paid, periodStart, periodEnd, changedAt })
  if (credits === 0) return 0
  await billing.addPlanChange({ invoiceId, subscriptionId, periodStart, changedAt, from, to })
  await add(billing, reading, { credits, description: `Change to plan ${plan.name}` })
  await limit(billing, subscription, { periodStart, creditsPerCycle: to })
  return credits
}

/**
 * Of the period in which a plan changed: the one that runs, else one that was paid for. Of any other only the end is known;
 * it is taken to be as long as the one that runs.
 */
async function periodStartOf(
  billing: BillingTransaction,
  { subscriptionId, currentPeriodStart, currentPeriodEnd }: Subscription,
  { changedAt, periodEnd }: PlanChange,
): Promise<number> {
  if (currentPeriodStart <= changedAt && changedAt < currentPeriodEnd) return currentPeriodStart
  const paid = await billing.periodAt(subscriptionId, changedAt)
  // Our row may be behind: then it has not that period, but the one before.
  if (paid !== undefined && paid !== currentPeriodStart) return paid
  return Math.min(changedAt, Math.max(0, periodEnd - (currentPeriodEnd - currentPeriodStart)))
}

async function creditsOf(billing: BillingTransaction, planId: string): Promise<number> {
  return (await planOf(billing, planId)).creditsPerCycle
}

async function add(
  billing: BillingTransaction,
  { customerId }: InvoiceReading,
  { credits, description }: { credits: number; description: string },
): Promise<void> {
  if (credits > 0) await billing.addCredits(customerId, { credits, type: 'grant', description })
}

/** A late payment of a period that is over says nothing of the present one. */
async function limit(
  billing: BillingTransaction,
  { customerId, currentPeriodStart }: Subscription,
  { periodStart, creditsPerCycle }: { periodStart: number; creditsPerCycle: number },
): Promise<void> {
  if (periodStart >= currentPeriodStart) await billing.setCreditLimit(customerId, creditsPerCycle)
}
