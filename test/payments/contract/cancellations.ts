/** Cancellations at any provider. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type Buyer, SUBSCRIPTION } from './buyer.ts'

export function cancellations(on: Buyer): void {
  describe('a cancellation', () => {
    it('by our API ends with the period', async () => {
      await on.subscribe()
      expect((await on.api.delete(SUBSCRIPTION)).status).to.equal(200)
      await on.is('CANCELLING')
      expect((await on.api.delete(SUBSCRIPTION)).status).to.equal(409)
      await on.world.advance(32)
      await on.is('CANCELLED')
      await on.has(100)
    })

    it('by our API ends now', async () => {
      await on.subscribe()
      expect((await on.api.delete(`${SUBSCRIPTION}/immediate`)).status).to.equal(204)
      await on.is('CANCELLED')
      expect((await on.api.delete(`${SUBSCRIPTION}/immediate`)).status).to.equal(409)
    })

    it('at the provider is followed, and so is taking it back', async () => {
      const id = await on.subscribe()
      await on.world.act(id, 'cancel')
      await on.is('CANCELLING')
      await on.world.act(id, 'resume')
      await on.is('ACTIVE')
      await on.world.act(id, 'cancel-now')
      await on.is('CANCELLED')
    })

    it('that a crash cut off after the provider’s yes is found by the sweep, and may be asked for again', async () => {
      const subscriptionId = await on.subscribe()
      on.world.losing(true)
      await on.world.provider.cancelAtPeriodEnd({ subscriptionId, reason: null })
      await on.world.provider.cancelAtPeriodEnd({ subscriptionId, reason: null })
      expect((await on.current())?.status).to.equal('ACTIVE')
      await on.sweep()
      expect((await on.current())?.status).to.equal('CANCELLING')
      await on.world.provider.cancelNow({ subscriptionId, reason: null })
      expect((await on.api.delete(`${SUBSCRIPTION}/immediate`)).status).to.equal(204)
    })
  })
}
