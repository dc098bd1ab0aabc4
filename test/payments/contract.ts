/**
 * What every adapter of a payment provider must make of our rows: one suite over the management API, a real Postgres and the
 * provider's own notifications.
 */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'

import { Buyer, SUBSCRIPTION, type World } from './contract/buyer.ts'
import { cancellations } from './contract/cancellations.ts'
import { moneyBack } from './contract/money-back.ts'
import { packs } from './contract/packs.ts'
import { planChanges } from './contract/plan-changes.ts'
import { plans } from './contract/plans.ts'
import { told } from './contract/told.ts'

/** `hasTax`: whether the provider adds tax to what it sells. */
export function contractOf(name: string, { hasTax }: { hasTax: boolean }, open: () => Promise<World>): void {
  describe(`the contract of payment providers: ${name}`, function () {
    this.timeout(60_000)
    const on = new Buyer()

    before(async () => {
      on.world = await open()
    })
    beforeEach(() => on.begin())
    after(() => on.world?.close())

    plans(on)
    cancellations(on)
    packs(on, hasTax)
    planChanges(on)
    moneyBack(on)
    told(on)

    it('has a portal for who has bought, and none for others', async () => {
      expect((await on.api.get(`${SUBSCRIPTION}/portal-url`)).status).to.equal(404)
      await on.subscribe()
      const { status, json } = await on.api.get(`${SUBSCRIPTION}/portal-url`)
      expect(status).to.equal(200)
      expect(new URL((json as { portalUrl: string }).portalUrl).protocol).to.match(/^https?:$/)
    })
  })
}
