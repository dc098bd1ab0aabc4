/** An invoice of a subscription as it was read at the provider, into our rows and the customer's credits. */

import type { InvoiceStatus } from '../domain/model.ts'
import { isReturned } from '../domain/returned-credits.ts'
import { type Applied, StrangerError } from './applied.ts'
import { grantInvoice } from './invoice-credits.ts'
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
  const granted = reading.status === 'paid' && (await grantInvoice({ billing, reading, subscription }))
  const back = await takeBack(billing, {
    saleId: invoiceId,
    customerId,
    amount,
    returnedInCents,
    what: `invoice ${invoiceId}`,
    begun,
  })
  return { raised: granted || back }
}

function statusOf({ status, amount, returnedInCents }: InvoiceReading): InvoiceStatus {
  return status === 'paid' && isReturned(amount, returnedInCents) ? 'refunded' : status
}
