import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { ReadingTime } from '../../internal/billing/ports.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { createSubscriptionStore } from '../../internal/postgres/subscriptions.ts'
import { PERIOD, providerHarnessOfSuite, START } from './provider-harness.ts'

describe('billing: subscriptions that are read at a payment provider', () => {
  const on = providerHarnessOfSuite()

  describe('a subscription', () => {
    it('is what was read, and its paid period brings the credits', async () => {
      expect(await on.tell(on.subscription())).to.equal('applied')
      const { subscriptionId, customerId } = on
      expect(await on.current()).to.deep.equal({
        subscriptionId,
        customerId,
        planId: 'basic',
        status: 'ACTIVE',
        autoRenew: true,
        currentPeriodStart: START,
        currentPeriodEnd: START + PERIOD,
      })
      expect(await on.account()).to.deep.equal({ credits: 10, creditLimit: 0, debt: 0 })
      await on.tell(on.invoice())
      expect(await on.account()).to.deep.equal({ credits: 110, creditLimit: 100, debt: 0 })
      expect((await on.movements())[0]).to.deep.equal(['grant', 100, 'Credits of plan Basic', 110])
      expect(on.credited).to.deep.equal([customerId])
    })

    for (const status of ['PENDING', 'PAST_DUE', 'CANCELLING', 'CANCELLED', 'ACTIVE'] as const) {
      it(`may be ${status}`, async () => {
        await on.tell(on.subscription({ status }))
        const autoRenew = status !== 'CANCELLING' && status !== 'CANCELLED'
        expect(await on.current()).to.include({ status, autoRenew })
      })
    }

    it('that was cancelled at the provider, and taken back there, follows', async () => {
      await on.tell(on.subscription(), on.subscription({ status: 'CANCELLING' }))
      expect(await on.current()).to.include({ status: 'CANCELLING', autoRenew: false })
      await on.tell(on.subscription())
      expect(await on.current()).to.include({ status: 'ACTIVE', autoRenew: true })
    })

    it('is over for good', async () => {
      await on.tell(on.subscription(), on.subscription({ status: 'CANCELLED' }))
      expect(await on.tell(on.subscription())).to.equal('applied')
      expect(await on.current()).to.include({ status: 'CANCELLED', autoRenew: false })
    })

    it('is what the reading says that began last, not the one that ended last', async () => {
      await on.tell(on.subscription())
      const [reference] = on.set(on.subscription({ status: 'PAST_DUE' }))
      on.provider.beforeAnswer = async () => {
        on.provider.beforeAnswer = async () => {}
        await on.tell(on.subscription({ status: 'CANCELLING' }))
      }
      expect(await on.events().receive(reference!)).to.equal('applied')
      expect((await on.current())?.status).to.equal('CANCELLING')
    })

    it('keeps the provider’s yes to its customer against a reading that began before', async () => {
      await on.tell(on.subscription())
      const [reference] = on.set(on.subscription())
      on.provider.beforeAnswer = async () => {
        const change = { from: ['ACTIVE'], to: 'CANCELLING', reason: null } as const
        await createSubscriptionStore(on.db).end(on.subscriptionId, change)
      }
      await on.events().receive(reference!)
      expect((await on.current())?.status).to.equal('CANCELLING')
    })

    it('forgets which cancellation was answered when that is taken back at the provider', async () => {
      await on.tell(on.subscription())
      const change = { from: ['ACTIVE'], to: 'CANCELLING', reason: null } as const
      const end = async () => (await createSubscriptionStore(on.db).end(on.subscriptionId, change)).changed
      expect([await end(), await end()]).to.deep.equal([true, false])
      await on.tell(on.subscription({ status: 'CANCELLING' }))
      expect(await end()).to.equal(false)
      await on.tell(on.subscription(), on.subscription({ status: 'CANCELLING' }))
      expect([await end(), await end()]).to.deep.equal([true, false])
    })

    it('is decided by Postgres’ clock in microseconds', async () => {
      const at = (fraction: string) => {
        const now = async () => `2026-05-05T00:00:00.${fraction}Z` as ReadingTime
        return on.events({ ...createReadingLog(on.db), now })
      }
      const [reference] = on.set(on.subscription({ status: 'PAST_DUE' }))
      await at('000002').receive(reference!)
      on.set(on.subscription({ status: 'CANCELLING' }))
      await at('000001').receive(reference!)
      expect((await on.current())?.status).to.equal('PAST_DUE')
      await at('000002').receive(reference!)
      expect((await on.current())?.status, 'of one time the later told').to.equal('CANCELLING')
    })
  })

  describe('a second subscription', () => {
    it('is ended and paid back: the newer one of two that are not paid, whichever is told first', async () => {
      const older = on.subscription()
      const newer = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      await on.tell(newer)
      expect(on.reported).to.deep.equal([])
      await on.tell(older)
      expect(on.reported).to.deep.equal([`second: ${newer.subscriptionId}`])
      expect(on.provider.asked).to.deep.equal([
        { call: 'cancelAndRefund', subscriptionId: newer.subscriptionId },
      ])
      expect((await on.current())?.subscriptionId).to.equal(older.subscriptionId)
      const [row] = await on.db`
        SELECT status FROM subscriptions WHERE subscription_id = ${newer.subscriptionId}`
      expect(row).to.deep.equal({ status: 'CANCELLED' })
    })

    it('is the one that was paid later, though it was begun earlier', async () => {
      const begun = on.subscription({ status: 'PENDING' })
      const subscriptionId = `sub-${randomUUID()}`
      const used = on.subscription({ subscriptionId, createdAt: START + 1 })
      await on.tell(begun)
      await on.tell(used, on.invoice(0, { invoiceId: `of-${subscriptionId}`, subscriptionId }))
      await on.tell(on.subscription())
      expect(on.reported).to.deep.equal([`second: ${on.subscriptionId}`])
      expect((await on.current())?.subscriptionId).to.equal(subscriptionId)
    })

    it('is ended also when its money cannot be paid back, and that is told', async () => {
      const older = on.subscription()
      const newer = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      on.provider.refused = ['the charge is too old']
      await on.tell(older)
      await on.tell(newer)
      on.provider.refused = []
      expect(on.reported).to.deep.equal([`second: ${newer.subscriptionId}, refused: the charge is too old`])
      expect((await on.current())?.subscriptionId).to.equal(older.subscriptionId)
    })

    it('is ended also when its invoice is told first', async () => {
      await on.tell(on.subscription())
      const subscriptionId = `sub-${randomUUID()}`
      on.set(on.subscription({ subscriptionId, createdAt: START + 1 }))
      expect(await on.tell(on.invoice(0, { subscriptionId }))).to.equal('applied')
      expect(on.reported).to.deep.equal([`second: ${subscriptionId}`])
    })

    it('that ended meanwhile is not ended again', async () => {
      await on.tell(on.subscription())
      const second = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      on.provider.beforeAnswer = async (id) => {
        if (id !== on.subscriptionId) return
        on.provider.beforeAnswer = async () => {}
        await on.db`
          UPDATE subscriptions SET status = 'CANCELLED' WHERE subscription_id = ${second.subscriptionId}`
      }
      expect(await on.tell(second)).to.equal('applied')
      expect(on.provider.asked).to.deep.equal([])
      expect(on.reported).to.deep.equal([])
    })

    it('is ended once the provider answers', async () => {
      const second = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      await on.tell(on.subscription())
      const [reference] = on.set(second)
      const { provider } = on
      const { cancelAndRefund } = provider
      provider.cancelAndRefund = () => Promise.reject(new Error('the provider says 500'))
      const failed = await on
        .events()
        .receive(reference!)
        .catch((error: Error) => error.message)
      expect(failed).to.equal('the provider says 500')
      provider.cancelAndRefund = cancelAndRefund
      expect(await on.events().receive(reference!)).to.equal('applied')
      expect(on.reported).to.deep.equal([`second: ${second.subscriptionId}`])
    })

    it('that the provider does not end makes no loop', async () => {
      on.provider.cancelAndRefund = async () => []
      await on.tell(on.subscription())
      const second = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      expect(await on.tell(second)).to.equal('applied')
      expect(on.reported.length).to.be.within(1, 4)
    })

    it('is none when the first has ended at the provider, and our row does not know yet', async () => {
      await on.tell(on.subscription({ status: 'CANCELLING' }))
      on.set(on.subscription({ status: 'CANCELLED' }))
      const next = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      expect(await on.tell(next)).to.equal('applied')
      expect(on.reported).to.deep.equal([])
      expect(on.provider.asked).to.deep.equal([])
      expect(await on.current()).to.include({ subscriptionId: next.subscriptionId, status: 'ACTIVE' })
    })

    it('is none when the period of the first is over, and the provider has not ended it yet', async () => {
      await on.tell(on.subscription({ status: 'CANCELLING' }))
      const next = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      expect(await on.tell(next)).to.equal('applied')
      expect(on.provider.asked).to.deep.equal([])
      expect(await on.current()).to.include({ subscriptionId: next.subscriptionId, status: 'ACTIVE' })
    })

    it('is not ended while the first cannot be read', async () => {
      await on.tell(on.subscription())
      on.set(on.subscription({ status: 'CANCELLED', planId: 'none' }))
      const next = on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 })
      expect(await on.tell(next)).to.equal('later')
      expect(on.provider.asked).to.deep.equal([])
      on.set(on.subscription())
      expect(await on.tell(next)).to.equal('applied')
      expect(on.reported.at(-1)).to.equal(`second: ${next.subscriptionId}`)
    })

    it('is none when the first is over or was never paid', async () => {
      await on.tell(on.subscription({ status: 'CANCELLED' }))
      await on.tell(on.subscription({ subscriptionId: `sub-${randomUUID()}`, status: 'PENDING' }))
      await on.tell(on.subscription({ subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 }))
      expect(on.reported).to.deep.equal([])
    })
  })
})
