import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { SubscriptionStatus } from '../../internal/domain/model.ts'
import {
  changeBy,
  isActive,
  isUsable,
  type KnownSubscription,
  type SubscriptionEvent,
} from '../../internal/domain/subscription.ts'

const STATES: SubscriptionStatus[] = ['PENDING', 'ACTIVE', 'PAST_DUE', 'CANCELLING', 'CANCELLED']

/** Told at 100, in a period from 1000 to 2000. */
function known(status: SubscriptionStatus): KnownSubscription {
  return {
    subscriptionId: 's',
    customerId: 'c',
    planId: 'p',
    status,
    currentPeriodStart: 1_000,
    currentPeriodEnd: 2_000,
    autoRenew: status !== 'CANCELLING' && status !== 'CANCELLED',
    toldAt: 100,
  }
}

const contract = { customerId: 'c', planId: 'p', autoRenew: true }
const first = { periodStart: 1_000, periodEnd: 2_000 }
const second = { periodStart: 2_000, periodEnd: 3_000 }

function event(kind: SubscriptionEvent['kind'], period = first, at = 200): SubscriptionEvent {
  return { kind, subscriptionId: 's', at, ...contract, ...period } as SubscriptionEvent
}

describe('a subscription', () => {
  it('is active when it is paid or its payment is late', () => {
    expect(STATES.filter(isActive)).to.deep.equal(['ACTIVE', 'PAST_DUE'])
  })

  it('is usable while it is active, and until the end of its period when it is being cancelled', () => {
    expect(STATES.filter((status) => isUsable(known(status), 1_999))).to.deep.equal([
      ...['ACTIVE', 'PAST_DUE', 'CANCELLING'],
    ])
    expect(STATES.filter((status) => isUsable(known(status), 2_000))).to.deep.equal(['ACTIVE', 'PAST_DUE'])
  })

  describe('that nobody knows', () => {
    it('starts active, with a cycle', () => {
      expect(changeBy(event('subscription_activated'), undefined)).to.deep.equal({
        subscription: { ...known('ACTIVE'), toldAt: 200 },
        cycle: { planId: 'p', periodStart: 1_000 },
      })
    })

    it('starts pending, without one', () => {
      const change = changeBy(event('subscription_pending'), undefined)
      expect(change?.subscription.status).to.equal('PENDING')
      expect(change?.cycle).to.equal(null)
    })

    it('is not started by anything else', () => {
      for (const kind of ['subscription_renewed', 'subscription_past_due', 'subscription_cancelled'] as const)
        expect(changeBy(event(kind), undefined), kind).to.equal(undefined)
    })
  })

  const rows: [SubscriptionStatus, SubscriptionEvent['kind'], SubscriptionStatus][] = [
    ['PENDING', 'subscription_pending', 'PENDING'],
    ['PENDING', 'subscription_activated', 'ACTIVE'],
    ['PENDING', 'subscription_renewed', 'ACTIVE'],
    ['PENDING', 'subscription_past_due', 'PENDING'],
    ['PENDING', 'subscription_cancelled', 'CANCELLED'],
    ['ACTIVE', 'subscription_pending', 'ACTIVE'],
    ['ACTIVE', 'subscription_activated', 'ACTIVE'],
    ['ACTIVE', 'subscription_renewed', 'ACTIVE'],
    ['ACTIVE', 'subscription_past_due', 'PAST_DUE'],
    ['ACTIVE', 'subscription_cancelled', 'CANCELLED'],
    ['PAST_DUE', 'subscription_pending', 'PAST_DUE'],
    ['PAST_DUE', 'subscription_activated', 'ACTIVE'],
    ['PAST_DUE', 'subscription_renewed', 'ACTIVE'],
    ['PAST_DUE', 'subscription_past_due', 'PAST_DUE'],
    ['PAST_DUE', 'subscription_cancelled', 'CANCELLED'],
    ['CANCELLING', 'subscription_pending', 'CANCELLING'],
    ['CANCELLING', 'subscription_activated', 'CANCELLING'],
    ['CANCELLING', 'subscription_renewed', 'CANCELLING'],
    ['CANCELLING', 'subscription_past_due', 'CANCELLING'],
    ['CANCELLING', 'subscription_cancelled', 'CANCELLED'],
    ['CANCELLED', 'subscription_pending', 'CANCELLED'],
    ['CANCELLED', 'subscription_activated', 'CANCELLED'],
    ['CANCELLED', 'subscription_renewed', 'CANCELLED'],
    ['CANCELLED', 'subscription_past_due', 'CANCELLED'],
    ['CANCELLED', 'subscription_cancelled', 'CANCELLED'],
  ]
  for (const [from, kind, to] of rows) {
    it(`${from} is ${to} after ${kind} of the same period`, () => {
      const change = changeBy(event(kind), known(from))
      expect(change?.subscription.status ?? from).to.equal(to)
      const pays = kind === 'subscription_activated' || kind === 'subscription_renewed'
      const cycle = pays && from !== 'CANCELLED' ? { planId: 'p', periodStart: 1_000 } : null
      expect(change?.cycle ?? null).to.deep.equal(cycle)
    })
  }

  for (const from of ['ACTIVE', 'PAST_DUE', 'CANCELLING'] as const) {
    it(`${from} begins a cycle with the next period`, () => {
      const change = changeBy(event('subscription_renewed', second), known(from))
      expect(change?.cycle).to.deep.equal({ planId: 'p', periodStart: 2_000 })
      expect(change?.subscription).to.include({
        status: from === 'CANCELLING' ? 'CANCELLING' : 'ACTIVE',
        currentPeriodStart: 2_000,
        currentPeriodEnd: 3_000,
      })
    })
  }

  it('takes another plan with a period of it', () => {
    const upgrade = { ...event('subscription_activated', second), planId: 'larger' } as SubscriptionEvent
    expect(changeBy(upgrade, known('ACTIVE'))?.subscription.planId).to.equal('larger')
  })

  it('keeps its period and plan when an earlier period is told late, which has its cycle all the same', () => {
    const late = { ...event('subscription_activated', { periodStart: 0, periodEnd: 1_000 }), planId: 'small' }
    const change = changeBy(late as SubscriptionEvent, known('ACTIVE'))
    expect(change?.cycle).to.deep.equal({ planId: 'small', periodStart: 0 })
    expect(change?.subscription).to.include({ planId: 'p', currentPeriodStart: 1_000 })
  })

  it('will not renew once it is cancelled', () => {
    expect(changeBy(event('subscription_cancelled'), known('ACTIVE'))?.subscription.autoRenew).to.equal(false)
  })

  it('does not go back to what newer events have overtaken', () => {
    const late = changeBy(event('subscription_past_due', first, 99), known('ACTIVE'))
    expect(late?.subscription).to.deep.equal(known('ACTIVE'))
    const renewed = changeBy(event('subscription_renewed', second, 99), known('PAST_DUE'))
    expect(renewed?.cycle).to.deep.equal({ planId: 'p', periodStart: 2_000 })
    expect(renewed?.subscription).to.include({ status: 'PAST_DUE', toldAt: 100, currentPeriodStart: 2_000 })
    expect(
      changeBy(event('subscription_cancelled', first, 99), known('ACTIVE'))?.subscription.status,
    ).to.equal('CANCELLED')
  })

  it('only moves on, and ends for good, in whatever order it is told', () => {
    const told = fc.record({
      kind: fc.constantFrom<SubscriptionEvent['kind']>(
        ...(['subscription_pending', 'subscription_activated', 'subscription_renewed'] as const),
        ...(['subscription_past_due', 'subscription_cancelled'] as const),
      ),
      period: fc.integer({ min: 0, max: 3 }),
      at: fc.integer({ min: 0, max: 9 }),
    })
    fc.assert(
      fc.property(fc.array(told, { maxLength: 20 }), (events) => {
        let current: KnownSubscription | undefined
        for (const { kind, period, at } of events) {
          const before = current
          const times = { periodStart: period * 1_000, periodEnd: (period + 1) * 1_000 }
          const change = changeBy(event(kind, times, at), before)
          if (change === undefined) continue
          current = change.subscription
          expect(before?.status).to.not.equal('CANCELLED')
          if (before && before.status !== 'PENDING')
            expect(current.currentPeriodStart).to.be.at.least(before.currentPeriodStart)
          if (current.status === 'CANCELLED') expect(current.autoRenew).to.equal(false)
        }
      }),
    )
  })
})
