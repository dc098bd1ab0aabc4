/** An invoice of a subscription as it was read at the provider, into our rows and the customer's credits. */

import type { InvoiceStatus } from '../domain/model.ts'
import { isReturned } from '../domain/returned-credits.ts'
import { type Applied, StrangerError } from './applied.ts'
import { planOf } from './apply-subscription.ts'
import type { BillingTransaction, ReadingTime } from './ports.ts'
import type { InvoiceReading } from './readings.ts'
import { takeBack } from './take-back.ts'

export async function applyInvoice(
  billing: BillingTransaction,
  reading: InvoiceReading,
  begun: ReadingTime,
): Promise<Applied> {
  const { invoiceId, subscriptionId, customerId, amount, returnedInCents, paidAt, createdAt } = reading
  const subscription = await billing.subscription(subscriptionId)
  if (subscription === undefined) return { first: subscriptionId }
  if (subscription.customerId !== customerId) throw new StrangerError(customerId)
  const known = await billing.invoice(invoiceId)
  if (known !== undefined && known.customerId !== customerId) throw new StrangerError(customerId)
  const status = statusOf(reading)
  await billing.putInvoice(
    { invoiceId, customerId, subscriptionId, status, amount, paidAt, createdAt },
    begun,
  )
  const granted = reading.status === 'paid' && (await grantCycle(billing, reading, subscription))
  const back = await takeBack(billing, {
    saleId: invoiceId,
    customerId,
    amount,
    returnedInCents,
    what: `invoice ${invoiceId}`,
    begun,
  })
  // The plan may have changed before its first invoice was told: what it became is worth more than what was granted.
  const isBehind = reading.cycle !== null && reading.cycle.planId !== subscription.planId
  return { raised: granted || back, ...(granted && isBehind && { next: subscriptionId }) }
}

function statusOf({ status, amount, returnedInCents }: InvoiceReading): InvoiceStatus {
  return status === 'paid' && isReturned(amount, returnedInCents) ? 'refunded' : status
}

/** Once a period, however many invoices and events tell that it is paid. */
async function grantCycle(
  billing: BillingTransaction,
  { invoiceId, subscriptionId, customerId, cycle }: InvoiceReading,
  current: { currentPeriodStart: number },
): Promise<boolean> {
  if (cycle === null) return false
  const { planId, periodStart } = cycle
  const plan = await planOf(billing, planId)
  if ((await billing.cycleCredits(subscriptionId, periodStart)) !== undefined) return false
  const credits = plan.creditsPerCycle
  await billing.putCycleCredits(subscriptionId, periodStart, credits)
  await billing.beginSale(invoiceId, customerId, credits)
  await billing.addCredits(customerId, {
    credits,
    type: 'grant',
    description: `Credits of plan ${plan.name}`,
  })
  // A late payment of a period that is over says nothing of the present one.
  if (periodStart >= current.currentPeriodStart) await billing.setCreditLimit(customerId, credits)
  return true
}
