import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { SubscriptionStatus } from '../../internal/domain/model.ts'
import { DAY_MS } from '../support/billing-rows.ts'
import { answers, billingHarnessOfSuite, deniesRole } from './billing-harness.ts'
import type { Admin } from './caller.ts'

const PATH = '/v1/admin/subscription'
const NOW = `${PATH}/immediate`

const noProvider = { error: 'Payment provider is not configured' }
const notAgreed = { error: 'Payment provider did not agree, try again' }
const none = { error: 'No active subscription' }
const cancelling = { error: 'Subscription is already being cancelled' }
const cancelled = { error: 'Subscription is already cancelled' }

describe('the subscription of a customer', () => {
  const harness = billingHarnessOfSuite()

  describe('as it is read', () => {
    it('is null with its plan when there was never one', async () => {
      for (const key of ['viewer', 'member', 'admin', 'owner', 'scoped'] as const) {
        await answers(harness.as(key).get(PATH), 200, { subscription: null, plan: null })
      }
    })

    it('comes with its plan', async () => {
      const subscription = await harness.subscribe()
      const plan = { ...harness.plan }
      await answers(harness.as('viewer').get(PATH), 200, { subscription, plan })
      await answers(harness.withoutProvider('viewer').get(`${PATH}?customerId=${harness.customerId}`), 200, {
        subscription,
        plan,
      })
    })

    it('is none of another customer', async () => {
      await answers(harness.as('viewer').get(`${PATH}?customerId=other`), 403, {
        error: 'customerId differs from the authenticated customer',
      })
    })

    it('is the one that counts: active, then cancelling, pending, cancelled, and of these the newest', async () => {
      const states: SubscriptionStatus[] = ['CANCELLED', 'CANCELLED', 'PENDING', 'CANCELLING', 'PAST_DUE']
      for (const [index, status] of states.entries()) {
        const createdAt = Date.now() - (index - 1) ** 2 * 1_000
        const { subscriptionId } = await harness.subscribe({ status, createdAt })
        expect((await harness.current())?.subscriptionId, status).to.equal(subscriptionId)
      }
      const { subscriptionId } = await harness.subscribe({ status: 'ACTIVE' })
      expect((await harness.current())?.subscriptionId).to.equal(subscriptionId)
    })
  })

  describe('cancelled for the end of its period', () => {
    for (const status of ['ACTIVE', 'PAST_DUE'] as const) {
      it(`is cancelling, when it was ${status}`, async () => {
        const before = await harness.subscribe({ status })
        const endsAt = before.currentPeriodEnd
        await answers(harness.as('owner').delete(PATH), 200, {
          message: `Subscription is cancelled and stays usable until ${new Date(endsAt).toISOString()}`,
          endsAt,
          status: 'CANCELLING',
        })
        expect(await harness.current()).to.deep.equal({ ...before, status: 'CANCELLING', autoRenew: false })
        expect(harness.provider.asked).to.deep.equal([
          { call: 'cancelAtPeriodEnd', subscriptionId: before.subscriptionId, reason: null },
        ])
      })
    }

    it('is refused a second time, and when it is over', async () => {
      await harness.subscribe()
      expect((await harness.as('owner').delete(PATH)).status).to.equal(200)
      await answers(harness.as('owner').delete(PATH), 409, cancelling)
      expect(harness.provider.asked).to.have.length(1)
      await harness.as('owner').delete(NOW)
      await answers(harness.as('owner').delete(PATH), 409, cancelled)
      expect((await harness.current())?.status).to.equal('CANCELLED')
    })

    it('is for its owner', async () => {
      const before = await harness.subscribe()
      for (const key of ['viewer', 'member', 'admin'] as const) {
        await deniesRole(harness.as(key).delete(PATH), 'owner')
      }
      expect(await harness.current()).to.deep.equal(before)
    })

    it('happens once, however many ask at the same time', async () => {
      await harness.subscribe()
      const all = await Promise.all(Array.from({ length: 5 }, () => harness.as('owner').delete(PATH)))
      expect(all.filter(({ status }) => status === 200)).to.have.length(1)
      expect(all.filter(({ status }) => status === 409)).to.have.length(4)
    })

    it('answers 200 when a reading was faster than the answer of the provider', async () => {
      const { subscriptionId } = await harness.subscribe()
      harness.provider.afterYes = () =>
        harness.db`UPDATE subscriptions SET status = 'CANCELLING' WHERE subscription_id = ${subscriptionId}`
      expect((await harness.as('owner').delete(PATH)).status).to.equal(200)
      await answers(harness.as('owner').delete(PATH), 409, cancelling)
      expect(harness.provider.asked).to.have.length(1)
    })

    it('answers 409 when the provider has ended it meanwhile', async () => {
      const { subscriptionId } = await harness.subscribe()
      harness.provider.afterYes = () =>
        harness.db`UPDATE subscriptions SET status = 'CANCELLED' WHERE subscription_id = ${subscriptionId}`
      await answers(harness.as('owner').delete(PATH), 409, cancelled)
      expect((await harness.current())?.status).to.equal('CANCELLED')
    })
  })

  describe('cancelled now', () => {
    for (const status of ['ACTIVE', 'PAST_DUE', 'CANCELLING'] as const) {
      it(`is over, when it was ${status}`, async () => {
        const before = await harness.subscribe({ status })
        const answer = await harness.as('admin').delete(NOW)
        expect([answer.status, answer.text]).to.deep.equal([204, ''])
        expect(await harness.current()).to.deep.equal({ ...before, status: 'CANCELLED', autoRenew: false })
        expect(harness.provider.asked).to.deep.equal([
          { call: 'cancelNow', subscriptionId: before.subscriptionId, reason: null },
        ])
      })
    }

    it('answers 204 once when a reading was faster than the answer of the provider', async () => {
      const { subscriptionId } = await harness.subscribe({ status: 'CANCELLING' })
      harness.provider.afterYes = () =>
        harness.db`UPDATE subscriptions SET status = 'CANCELLED' WHERE subscription_id = ${subscriptionId}`
      const all = await Promise.all([harness.as('owner').delete(NOW), harness.as('owner').delete(NOW)])
      expect(all.map(({ status }) => status).sort()).to.deep.equal([204, 409])
    })

    it('is refused a second time', async () => {
      await harness.subscribe()
      expect((await harness.as('owner').delete(NOW)).status).to.equal(204)
      await answers(harness.as('owner').delete(NOW), 409, cancelled)
      expect(harness.provider.asked).to.have.length(1)
    })

    it('is for admins and owners', async () => {
      const before = await harness.subscribe()
      for (const key of ['viewer', 'member'] as const) {
        await deniesRole(harness.as(key).delete(NOW), 'admin, owner')
      }
      expect(await harness.current()).to.deep.equal(before)
    })
  })

  describe('in the portal of the provider', () => {
    const PORTAL = `${PATH}/portal-url`

    it('is managed by admins and owners', async () => {
      for (const key of ['admin', 'owner'] as const) {
        await answers(harness.as(key).get(PORTAL), 200, {
          portalUrl: `https://pay.example/portal/${harness.customerId}`,
        })
      }
      for (const key of ['viewer', 'member'] as const) {
        await deniesRole(harness.as(key).get(PORTAL), 'admin, owner')
      }
      await answers(harness.as('scoped').get(PORTAL), 403, {
        error: 'A project-scoped key cannot manage the subscription',
      })
    })

    it('is nowhere for whoever has bought nothing, and without a provider or its answer', async () => {
      harness.provider.unknownOffers.add(harness.customerId)
      await answers(harness.as('owner').get(PORTAL), 404, { error: 'Account has bought nothing yet' })
      await answers(harness.withoutProvider().get(PORTAL), 503, noProvider)
      harness.provider.failing = true
      await answers(harness.as('owner').get(PORTAL), 503, notAgreed)
    })
  })

  const ways: [path: string, call: 'cancelAtPeriodEnd' | 'cancelNow'][] = [
    [PATH, 'cancelAtPeriodEnd'],
    [NOW, 'cancelNow'],
  ]
  for (const [path, call] of ways) {
    describe(`DELETE ${path}`, () => {
      const remove = (who: Admin, body?: unknown) => who.delete(path, body)

      it('answers 404 without an active subscription; a pending one is none', async () => {
        await answers(remove(harness.as('owner')), 404, none)
        const pending = await harness.subscribe({ status: 'PENDING' })
        await answers(remove(harness.as('owner')), 404, none)
        expect(await harness.current()).to.deep.equal(pending)
        expect(harness.provider.asked).to.deep.equal([])
      })

      it('passes the reason on', async () => {
        const { subscriptionId } = await harness.subscribe()
        expect((await remove(harness.as('owner'), { reason: 'too “dear”' })).status).to.be.oneOf([200, 204])
        expect(harness.provider.asked).to.deep.equal([{ call, subscriptionId, reason: 'too “dear”' }])
        const [row] = await harness.db`
          SELECT cancel_reason FROM subscriptions WHERE subscription_id = ${subscriptionId}`
        expect(row).to.deep.equal({ cancel_reason: 'too “dear”' })
      })

      it('refuses a body that it does not know', async () => {
        const before = await harness.subscribe()
        const bad: [unknown, RegExp][] = [
          ['{', /not valid JSON/],
          ['[]', /JSON object/],
          [{ reason: 5 }, /^reason /],
          [{ reason: null }, /^reason /],
          [{ reason: 'x'.repeat(1_001) }, /^reason /],
          ['{"reason":"a\\u0000b"}', /^reason /],
          ['{"reason":"\\ud800"}', /^reason /],
          [{ reasons: 'x' }, /^reasons /],
        ]
        for (const [body, error] of bad) {
          const { status, json } = await remove(harness.as('owner'), body)
          expect(status, JSON.stringify(body)).to.equal(400)
          expect((json as { error: string }).error).to.match(error)
        }
        expect(await harness.current()).to.deep.equal(before)
        expect(harness.provider.asked).to.deep.equal([])
      })

      it('is not for a project-scoped key', async () => {
        const before = await harness.subscribe()
        await answers(remove(harness.as('scoped')), 403, {
          error: 'A project-scoped key cannot cancel the subscription',
        })
        expect(await harness.current()).to.deep.equal(before)
      })

      it('changes nothing without a provider, nor without its yes', async () => {
        const before = await harness.subscribe()
        await answers(remove(harness.withoutProvider()), 503, noProvider)
        harness.provider.failing = true
        const refused = await remove(harness.as('owner'))
        expect([refused.status, refused.json, refused.headers.get('retry-after')]).to.deep.equal([
          ...[503, notAgreed, '5'],
        ])
        expect(await harness.current()).to.deep.equal(before)
        harness.provider.failing = false
        expect((await remove(harness.as('owner'))).status).to.be.oneOf([200, 204])
      })

      it('heals what died between the yes of the provider and the row', async () => {
        const before = await harness.subscribe()
        harness.provider.afterYes = () => Promise.reject(new Error('killed'))
        expect((await remove(harness.as('owner'))).status).to.equal(503)
        expect(await harness.current()).to.deep.equal(before)
        harness.provider.afterYes = async () => {}
        expect((await remove(harness.as('owner'))).status).to.be.oneOf([200, 204])
        expect((await harness.current())?.autoRenew).to.equal(false)
        expect(harness.provider.asked.map((asked) => asked.call)).to.deep.equal([call, call])
      })

      it('checks in order: role, shape, existence, state, provider', async () => {
        const bare = (key: 'viewer' | 'owner') => harness.withoutProvider(key)
        expect((await remove(bare('viewer'), '{')).status).to.equal(403)
        expect((await remove(bare('owner'), '{')).status).to.equal(400)
        await answers(remove(bare('owner')), 404, none)
        await harness.subscribe({ status: 'CANCELLED', createdAt: Date.now() - DAY_MS })
        await answers(remove(bare('owner')), 409, cancelled)
        await harness.subscribe()
        await answers(remove(bare('owner')), 503, noProvider)
      })
    })
  }
})
