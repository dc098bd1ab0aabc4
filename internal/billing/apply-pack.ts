/** The checkout of a credit pack as it was read at the provider, into our rows and the customer's credits. */

import { creditsForPayment, priceOf, tierOf } from '../domain/pack-prices.ts'
import { isReturned } from '../domain/returned-credits.ts'
import { type Applied, StrangerError } from './applied.ts'
import type { CataloguePack } from './catalogue.ts'
import type { BillingTransaction, ReadingTime } from './ports.ts'
import { type PackReading, UnusableReadingError } from './readings.ts'
import { takeBack } from './take-back.ts'

/** Of one sale: as of a pack in the catalogue. */
const MAX_CREDITS = 1_000_000_000_000

/** Sold is sold: neither an inactive pack nor a subscription that ended meanwhile takes back what was paid for. */
export async function applyPack(
  billing: BillingTransaction,
  reading: PackReading,
  begun: ReadingTime,
): Promise<Applied> {
  const { checkoutId, customerId, packId, amount, returnedInCents } = reading
  const pack = (await billing.packs()).find((each) => each.packId === packId)
  if (pack === undefined) throw new UnusableReadingError(`there is no pack ${packId}`)
  if (reading.state !== 'paid') return {}
  await putInvoice(billing, reading, begun)
  const sold = await sell(billing, reading, pack)
  const what = `credit pack ${packId}`
  const back = await takeBack(billing, {
    saleId: checkoutId,
    customerId,
    amount,
    returnedInCents,
    what,
    begun,
  })
  return { raised: sold || back }
}

async function sell(
  billing: BillingTransaction,
  { checkoutId, customerId, packId, paidInCents, currency }: PackReading,
  pack: CataloguePack,
): Promise<boolean> {
  if ((await billing.sale(checkoutId)) !== undefined) return false
  const tier = tierOf(pack.credits, await billing.plans(), currency)
  if (tier === undefined) throw new UnusableReadingError(`no plan has a price in ${currency}`)
  const credits = creditsForPayment(pack.credits, priceOf(pack.credits, tier), paidInCents)
  if (credits > MAX_CREDITS) throw new UnusableReadingError('paidInCents is too large')
  await billing.beginSale(checkoutId, customerId, credits)
  if (credits === 0) return false
  await billing.addCredits(customerId, { credits, type: 'purchase', description: `Credit pack ${packId}` })
  return true
}

/** It shows the subscription that counted when the pack was paid; a customer without any has no invoice of it. */
async function putInvoice(
  billing: BillingTransaction,
  reading: PackReading,
  begun: ReadingTime,
): Promise<void> {
  const { invoiceId, customerId, amount, returnedInCents, paidAt, createdAt } = reading
  const known = await billing.invoice(invoiceId)
  if (known !== undefined && known.customerId !== customerId) throw new StrangerError(customerId)
  const subscriptionId = known?.subscriptionId ?? (await billing.currentSubscription(customerId))
  if (subscriptionId === undefined) return
  const status = isReturned(amount, returnedInCents) ? 'refunded' : 'paid'
  await billing.putInvoice(
    { invoiceId, customerId, subscriptionId, status, amount, paidAt, createdAt },
    begun,
  )
}
