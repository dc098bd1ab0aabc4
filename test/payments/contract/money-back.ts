/** Refunds and disputes at any provider. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Invoice } from '../../../internal/domain/model.ts'
import { eventually } from '../../support/eventually.ts'
import type { Buyer } from './buyer.ts'

export function moneyBack(on: Buyer): void {
  describe('money that goes back', () => {
    it('takes its credits, in parts', async () => {
      await on.subscribe()
      const [{ invoiceId }] = (await on.invoices()) as [Invoice]
      await on.world.refund(invoiceId, undefined, 250)
      await on.has(75)
      await on.world.refund(invoiceId, undefined)
      await on.has(0)
      await eventually(async () => expect((await on.invoices())[0]?.status).to.equal('refunded'))
    })

    it('leaves a debt of what is spent, which the next period pays', async () => {
      await on.subscribe()
      await on.has(100)
      await on.world.db`UPDATE customers SET credits = credits - 80 WHERE customer_id = ${on.customerId}`
      await on.world.refund((await on.invoices())[0]!.invoiceId, undefined)
      await on.has(0)
      expect(await on.debt()).to.equal(80)
      await on.world.advance(31)
      await on.has(20)
      expect(await on.debt()).to.equal(0)
    })

    it('is gone when a dispute is lost', async () => {
      await on.subscribe()
      await on.world.dispute((await on.invoices())[0]!.invoiceId, 'lost')
      await on.has(0)
    })

    it('comes back when a dispute is won', async () => {
      await on.subscribe()
      await on.has(100)
      await on.world.dispute((await on.invoices())[0]!.invoiceId, 'won')
      await on.has(100)
      const moved = await on.get<{ transactions: { type: string; amount: number }[] }>(
        '/v1/admin/credits/transactions',
      )
      expect(moved.transactions.map(({ amount }) => amount).sort((a, b) => a - b)).to.deep.equal([
        -100, 100, 100,
      ])
    })
  })
}
