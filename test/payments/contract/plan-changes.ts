/** Another plan in the middle of a period, at any provider. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../../support/eventually.ts'
import type { Buyer } from './buyer.ts'

export function planChanges(on: Buyer): void {
  describe('another plan', () => {
    it('brings the difference for what is left, once', async () => {
      const id = await on.subscribe()
      await on.has(100)
      await on.world.act(id, 'change-plan', 'large')
      await eventually(async () => expect((await on.current())?.planId).to.equal('large'))
      // At the begin of the period; how much of it has passed is the provider's.
      await eventually(async () => expect(await on.credits()).to.be.within(995, 1_000))
      const balance = await on.credits()
      await on.world.act(id, 'change-plan', 'basic')
      await on.world.act(id, 'change-plan', 'large')
      await on.world.repeatAll()
      await on.has(balance)
      await on.world.advance(31)
      await on.has(balance + 1_000)
    })

    it('is the plan at once when the difference is paid late, and brings its credits with the money, once', async () => {
      const id = await on.subscribe()
      await on.has(100)
      await on.world.act(id, 'change-plan', 'large', 'pays-late')
      await eventually(async () =>
        expect((await on.invoices()).map(({ status }) => status)).to.include('open'),
      )
      await on.world.repeatAll()
      expect((await on.current())?.planId).to.equal('large')
      expect(await on.credits()).to.equal(100)
      await on.world.advance(1)
      await eventually(async () => expect(await on.credits()).to.be.within(995, 1_000))
      const balance = await on.credits()
      await on.world.repeatAll()
      await on.sweep()
      await on.has(balance)
    })

    it('brings nothing for a difference that is never paid, until the next period', async () => {
      const id = await on.subscribe()
      await on.has(100)
      await on.world.act(id, 'change-plan', 'large', 'fails')
      await eventually(async () =>
        expect((await on.invoices()).map(({ status }) => status)).to.include('void'),
      )
      await on.world.repeatAll()
      expect((await on.current())?.planId).to.equal('large')
      expect(await on.credits()).to.equal(100)
      await on.world.advance(31)
      await on.has(1_100)
    })

    it('gives its credits back with the money of the difference, and brings them again when that is paid anew', async () => {
      const id = await on.subscribe()
      await on.has(100)
      await on.world.act(id, 'change-plan', 'large')
      await eventually(async () => expect(await on.credits()).to.be.within(995, 1_000))
      const brought = (await on.credits()) - 100
      const { invoiceId, amount } = (await on.invoices()).find((each) => each.amount !== 1_000)!
      const half = Math.floor(amount / 2)
      await on.world.refund(invoiceId, undefined, half)
      const left = await eventually(async () => {
        const balance = await on.credits()
        expect(balance).to.be.within(100 + brought / 2 - 1, 100 + brought / 2 + 1)
        return balance
      })
      await on.world.repeatAll()
      await on.has(left)
      await on.world.refund(invoiceId, undefined)
      await on.has(100)
      await on.world.act(id, 'change-plan', 'basic')
      await on.world.act(id, 'change-plan', 'large')
      await eventually(async () => expect(await on.credits()).to.be.within(995, 1_000))
    })
  })
}
