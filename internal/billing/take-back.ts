/** Credits follow the money that goes back, and come back with it (docs/architecture/billing.md, "Money back"). */

import { returnedCredits } from '../domain/returned-credits.ts'
import type { BillingTransaction, ReadingTime } from './ports.ts'

export interface Returned {
  saleId: string
  customerId: string
  amount: number
  returnedInCents: number
  /** For the transaction's description. */
  what: string
  begun: ReadingTime
}

/**
 * Brings what is taken back of a sale to what the money says: the difference moves, so a refund that is told twice moves
 * nothing the second time. Answers whether the balance rose, as after a dispute that was won.
 */
export async function takeBack(
  billing: BillingTransaction,
  { saleId, customerId, amount, returnedInCents, what, begun }: Returned,
): Promise<boolean> {
  const sale = await billing.sale(saleId)
  if (sale === undefined) return false
  const returned = returnedCredits(sale.credits, amount, returnedInCents)
  if (!(await billing.putReturned(saleId, returned, begun))) return false
  const credits = returned - sale.returnedCredits
  if (credits > 0) await billing.takeCredits(customerId, { credits, description: `Money back of ${what}` })
  if (credits < 0) {
    const description = `Money kept of ${what}`
    await billing.addCredits(customerId, { credits: -credits, type: 'refund', description })
  }
  return credits < 0
}
