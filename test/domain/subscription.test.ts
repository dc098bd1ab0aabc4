import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Subscription, SubscriptionStatus } from '../../internal/domain/model.ts'
import { isActive, isUsable, renews, upgradeCredits } from '../../internal/domain/subscription.ts'

const STATES: SubscriptionStatus[] = ['PENDING', 'ACTIVE', 'PAST_DUE', 'CANCELLING', 'CANCELLED']

const inState = (status: SubscriptionStatus): Subscription => ({
  subscriptionId: 's',
  customerId: 'c',
  planId: 'p',
  status,
  currentPeriodStart: 1_000,
  currentPeriodEnd: 2_000,
  autoRenew: true,
})

describe('a subscription', () => {
  it('can be cancelled for its end while it is active or past due', () => {
    expect(STATES.filter(isActive)).to.deep.equal(['ACTIVE', 'PAST_DUE'])
  })

  it('is usable while it is active, and when it is cancelled until its period is over', () => {
    const usableAt = (now: number) => STATES.filter((status) => isUsable(inState(status), now))
    expect(usableAt(1_999)).to.deep.equal(['ACTIVE', 'PAST_DUE', 'CANCELLING'])
    expect(usableAt(2_000)).to.deep.equal(['ACTIVE', 'PAST_DUE'])
  })

  it('renews by its state', () => {
    expect(STATES.filter(renews)).to.deep.equal(['PENDING', 'ACTIVE', 'PAST_DUE'])
  })

  describe('that goes to a better plan', () => {
    const period = { periodStart: 1_000, periodEnd: 2_000, paid: [] }

    for (const [what, changedAt, credits] of [
      ['at the begin of the period', 1_000, 900],
      ['in its middle', 1_500, 450],
      ['at its end', 2_000, 0],
      ['as told before it began', 5, 900],
      ['as told after it ended', 9_999, 0],
    ] as const) {
      it(`brings ${credits} of 900 credits ${what}`, () => {
        expect(upgradeCredits({ from: 100, to: 1_000, ...period, changedAt })).to.equal(credits)
      })
    }

    it('rounds half up', () => {
      expect(upgradeCredits({ from: 0, to: 1, ...period, changedAt: 1_500 })).to.equal(1)
      expect(upgradeCredits({ from: 0, to: 1, ...period, changedAt: 1_501 })).to.equal(0)
    })

    for (const [what, paid, credits] of [
      ['all of it', [{ from: 0, to: 1_000 }], 0],
      ['more than it', [{ from: 0, to: 5_000 }], 0],
      ['what is below it', [{ from: 0, to: 100 }], 900],
      ['what is above it', [{ from: 1_000, to: 2_000 }], 900],
      ['what is far above it', [{ from: 3_000, to: 4_000 }], 900],
      ['its begin', [{ from: 0, to: 300 }], 700],
      ['its end', [{ from: 400, to: 2_000 }], 300],
      [
        'parts of it, in any order and twice',
        [
          { from: 700, to: 800 },
          { from: 200, to: 300 },
          { from: 250, to: 400 },
          { from: 220, to: 230 },
        ],
        600,
      ],
    ] as const) {
      it(`brings ${credits} of 900 credits when the period was paid for ${what}`, () => {
        expect(upgradeCredits({ from: 100, to: 1_000, ...period, paid, changedAt: 1_000 })).to.equal(credits)
      })
    }

    it('brings nothing for a lesser plan, and never more than the difference', () => {
      const plan = fc.integer({ min: 1, max: 1_000_000_000_000 })
      fc.assert(
        fc.property(plan, plan, fc.integer({ min: 0, max: 3_000 }), (from, to, changedAt) => {
          const credits = upgradeCredits({ from, to, ...period, changedAt })
          expect(credits).to.be.within(0, Math.max(0, to - from))
          if (to <= from) expect(credits).to.equal(0)
        }),
      )
    })
  })
})
