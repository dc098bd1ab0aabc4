/** A credit pack that is bought at any provider. `hasTax`: it adds tax to what it sells. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { eventually } from '../../support/eventually.ts'
import { type Buyer, PACK } from './buyer.ts'

export function packs(on: Buyer, hasTax: boolean): void {
  describe('a pack', () => {
    beforeEach(async () => {
      await on.subscribe()
      await on.has(100)
    })

    it('brings its credits and an invoice', async () => {
      await on.world.pay(await on.page(PACK), 'pays')
      await on.has(150)
      expect(await on.invoices()).to.have.length(2)
      expect((await on.invoices()).map(({ amount }) => amount).sort()).to.deep.equal([1_000, 500])
    })

    it('brings credits for what was paid', async () => {
      await on.world.pay(await on.page(PACK), 'pays', { amountInCents: 250 })
      await on.has(125)
    })

    it('brings nothing for nothing', async () => {
      await on.world.pay(await on.page(PACK), 'pays', { amountInCents: 0 })
      await on.has(100)
    })

    it('waits for the money', async () => {
      const url = await on.page(PACK)
      await on.world.pay(url, 'pays-late')
      await on.has(100)
      expect(await on.page(PACK), 'a completed page').to.not.equal(url)
      await on.world.advance(1)
      await on.has(150)
    })

    if (hasTax) {
      it('brings credits for what was paid without tax', async () => {
        await on.world.pay(await on.page(PACK), 'pays', { amountInCents: 250, taxInCents: 90 })
        await on.has(125)
        expect((await on.invoices()).map(({ amount }) => amount)).to.include(340)
      })
    }

    it('may be paid back, in parts', async () => {
      const url = await on.page(PACK)
      await on.world.pay(url, 'pays')
      await on.has(150)
      const { invoiceId } = (await on.invoices()).find(({ amount }) => amount === 500)!
      await on.world.refund(invoiceId, url, 250)
      await on.has(125)
      await on.world.refund(invoiceId, url)
      await on.has(100)
      await eventually(async () =>
        expect((await on.invoices()).find((each) => each.invoiceId === invoiceId)?.status).to.equal(
          'refunded',
        ),
      )
    })
  })
}
