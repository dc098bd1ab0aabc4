/** What any provider tells, repeats and forgets to tell. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../../support/eventually.ts'
import { type Buyer, PACK, PLAN } from './buyer.ts'

export function told(on: Buyer): void {
  describe('what is told', () => {
    it('again changes nothing', async () => {
      await on.subscribe()
      await on.world.pay(await on.page(PACK), 'pays')
      await on.has(150)
      const before = [await on.current(), await on.invoices(), await on.credits()]
      await on.world.repeatAll()
      expect([await on.current(), await on.invoices(), await on.credits()]).to.deep.equal(before)
    })

    it('by nobody is found by the sweep', async () => {
      on.world.losing(true)
      await on.world.pay(await on.page(PLAN('basic')), 'pays')
      expect(await on.current()).to.equal(null)
      await on.sweep()
      expect(await on.current()).to.include({ status: 'ACTIVE' })
      expect(await on.credits()).to.equal(100)
      await on.world.pay(await on.page(PACK), 'pays')
      await on.sweep()
      expect(await on.credits()).to.equal(150)
      await on.world.refund(
        (await on.invoices()).find(({ amount }) => amount === 1_000)!.invoiceId,
        undefined,
      )
      await on.sweep()
      expect(await on.credits()).to.equal(50)
    })

    it('twenty times at once at two nodes counts once', async () => {
      on.world.losing(true)
      await on.world.pay(await on.page(PLAN('basic')), 'pays')
      const references = []
      for await (const reference of on.world.provider.changes(0)) references.push(reference)
      const nodes = [on.node(), on.node()]
      const invoices = references.filter(({ kind }) => kind === 'invoice')
      const told = Array.from({ length: 20 }, (_, n) => nodes[n % 2]!.receive(invoices[n % invoices.length]!))
      for (const outcome of await Promise.all(told)) expect(outcome).to.equal('applied')
      await on.sweep()
      expect(await on.credits()).to.equal(100)
    })

    it('of two subscriptions leaves one, and pays the other back', async () => {
      const [basic, large] = [await on.page(PLAN('basic')), await on.page(PLAN('large'))]
      await on.world.pay(basic, 'pays')
      await on.is('ACTIVE')
      await on.world.pay(large, 'pays')
      await eventually(async () => expect(on.world.reported).to.include('second'))
      await eventually(async () =>
        expect((await on.invoices()).map(({ status }) => status).sort()).to.deep.equal(['paid', 'refunded']),
      )
      const { planId, status, subscriptionId } = (await on.current())!
      expect(status).to.equal('ACTIVE')
      await on.has(planId === 'basic' ? 100 : 1_000)
      const paid = (await on.invoices()).find((each) => each.status === 'paid')
      expect(paid?.subscriptionId).to.equal(subscriptionId)
    })

    it('of what is not there is nothing', async () => {
      for (const kind of ['subscription', 'invoice', 'pack'] as const) {
        expect(await on.world.provider.read({ kind, id: `none-${randomUUID()}` })).to.equal(undefined)
      }
    })
  })
}
