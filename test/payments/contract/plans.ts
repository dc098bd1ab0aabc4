/** A plan that is bought at any provider. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type Buyer, PLAN, SUBSCRIPTION } from './buyer.ts'

export function plans(on: Buyer): void {
  describe('a plan', () => {
    it('that is paid is active, with its credits and an invoice', async () => {
      await on.subscribe()
      await on.has(100)
      const subscription = (await on.current())!
      expect(subscription).to.include({ customerId: on.customerId, planId: 'basic', autoRenew: true })
      expect(subscription.currentPeriodEnd).to.be.above(subscription.currentPeriodStart)
      const [invoice] = await on.invoices()
      expect(invoice).to.include({ status: 'paid', amount: 1_000, customerId: on.customerId })
      expect(invoice?.subscriptionId).to.equal(subscription.subscriptionId)
    })

    it('that is paid late is pending until then', async () => {
      await on.world.pay(await on.page(PLAN('basic')), 'pays-late')
      await on.is('PENDING')
      await on.has(0)
      await on.world.advance(1)
      await on.is('ACTIVE')
      await on.has(100)
    })

    for (const outcome of ['fails', 'abandons'] as const) {
      it(`whose customer ${outcome} brings nothing, and may be bought again`, async () => {
        await on.world.pay(await on.page(PLAN('basic')), outcome)
        await on.has(0)
        expect((await on.current())?.status ?? 'CANCELLED').to.be.oneOf(['CANCELLED', 'PENDING'])
        await on.subscribe()
        await on.has(100)
      })
    }

    it('brings all its credits with a coupon, also one for everything', async () => {
      await on.subscribe('basic', { amountInCents: 400 })
      await on.has(100)
      expect((await on.invoices())[0]).to.include({ status: 'paid', amount: 400 })
    })

    it('that costs nothing brings its credits', async () => {
      await on.subscribe('basic', { amountInCents: 0 })
      await on.has(100)
      expect((await on.invoices())[0]).to.include({ status: 'paid', amount: 0 })
    })

    it('has one page while that is open, another one afterwards, and none while it lives', async () => {
      const first = await on.page(PLAN('basic'))
      expect(await on.page(PLAN('basic'))).to.equal(first)
      await on.world.pay(first, 'pays')
      await on.is('ACTIVE')
      const refused = await on.api.get(PLAN('basic'))
      expect([refused.status, (refused.json as { code: string }).code]).to.deep.equal([
        409,
        'subscription_exists',
      ])
      expect((await on.api.delete(`${SUBSCRIPTION}/immediate`)).status).to.equal(204)
      expect(await on.page(PLAN('basic'))).to.not.equal(first)
    })

    it('renews with its period, again and again', async () => {
      await on.subscribe()
      const first = (await on.current())!
      await on.world.advance(31)
      await on.has(200)
      await on.world.advance(31)
      await on.has(300)
      expect((await on.current())!.currentPeriodStart).to.be.above(first.currentPeriodEnd - 1)
      expect((await on.invoices()).map(({ status }) => status)).to.deep.equal(['paid', 'paid', 'paid'])
    })

    it('whose renewal fails is past due, and brings its credits once it is paid', async () => {
      const id = await on.subscribe()
      await on.world.act(id, 'fail-payment')
      await on.world.advance(31)
      await on.is('PAST_DUE')
      await on.has(100)
      await on.world.act(id, 'resume')
      await on.is('ACTIVE')
      await on.has(200)
    })
  })
}
