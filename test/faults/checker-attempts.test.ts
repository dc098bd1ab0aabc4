import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Fault, History } from './history.ts'
import { broken, changed, claim, commit, delivery, kill, SENT } from './sample-history.ts'

/** So many attempts of the second batch fail, `apartMs` from answer to attempt, before it is delivered. */
function fails(times: number, faults: Fault[], apartMs = 100, status = 500) {
  return (history: History) => {
    history.faults.push(...faults)
    const at = (index: number) => SENT + 700 + index * (apartMs + 1)
    const failed = Array.from({ length: times }, (_, index) =>
      delivery(20, [3, 4], { status, at: at(index) }),
    )
    history.deliveries.splice(1, 1, ...failed, delivery(20, [3, 4], { at: at(times) }))
  }
}

const of = (kind: string, from: number): Fault => ({ ...kill(from, from + 10), kind })

describe('the checker of attempts', () => {
  it('catches more attempts than faults explain', () => {
    expect(broken(fails(2, []))).to.deep.equal([])
    expect(broken(fails(3, []))).to.deep.equal(['attempts'])
    expect(broken(fails(3, [kill(SENT + 701)]))).to.deep.equal([])
    expect(broken(fails(3, [of('destination-reset -', SENT + 701)])), 'it counts').to.deep.equal(['attempts'])
  })

  it('catches nine attempts of five that are excused by kills elsewhere', () => {
    const nineOfFive = (node: (kill: number) => string, claims: number) => (history: History) => {
      history.changes[0] = changed({ maxAttempts: 5 })
      const kills = [1, 2, 3, 4].map((each) => of(`kill ${node(each)}`, SENT + 650 + each * 100))
      fails(8, kills)(history)
      const taken = Array.from({ length: claims }, (_, index) =>
        claim(30 + index, 'a', SENT + 700 + index * 100),
      )
      history.commits = [claim(1, 'a', SENT), ...taken]
      history.claims = [{ shard: 0, epoch: 1, node: 'actor-1' }]
    }
    expect(broken(nineOfFive((each) => `actor-${each + 1}`, 4))).to.deep.equal(['attempts'])
    expect(broken(nineOfFive(() => 'actor-1', 4))).to.deep.equal([])
    expect(broken(nineOfFive(() => 'actor-1', 3)), 'one claim too few').to.deep.equal(['attempts'])
  })

  it('goes by the largest number that held meanwhile', () => {
    const told = (askedAt: number) => (history: History) => {
      history.changes.push(changed({ maxAttempts: 4 }, { askedAt, answeredAt: askedAt + 1 }))
      fails(3, [])(history)
    }
    expect(broken(told(SENT + 800))).to.deep.equal([])
    expect(broken(told(SENT + 5_000)), 'told so later').to.deep.equal(['attempts'])
  })
})

describe('the checker of back-off', () => {
  const slow = (change: (history: History) => void) => (history: History) => {
    history.changes[0] = changed({ backoff: { initialMs: 200, maxMs: 500, multiplier: 2 } })
    change(history)
  }

  it('catches an attempt that comes earlier than its back-off after the answer', () => {
    expect(broken(slow(fails(1, [], 200)))).to.deep.equal([])
    expect(broken(slow(fails(1, [], 100)))).to.deep.equal(['back-off'])
    expect(broken(slow(fails(2, [], 400)))).to.deep.equal([])
    expect(broken(slow(fails(2, [], 300))), 'the second one is longer').to.deep.equal(['back-off'])
  })

  it('never asks for more than the longest', () => {
    const patient = (history: History) => {
      history.changes[0] = changed({
        maxAttempts: 5,
        backoff: { initialMs: 200, maxMs: 500, multiplier: 10 },
      })
      fails(4, [], 500)(history)
    }
    expect(broken(patient)).to.deep.equal([])
  })

  it('lets come at once what a fault cut off', () => {
    expect(broken(slow(fails(1, [kill(SENT + 701)], 10)))).to.deep.equal([])
    expect(broken(slow(fails(1, [kill(SENT + 5_000)], 10))), 'the fault came later').to.deep.equal([
      'back-off',
    ])
    expect(broken(slow(fails(1, [], 10, 0))), 'nobody answered').to.deep.equal([])
    // The attempt behind it is the second one, though it is the third that came.
    const third = (history: History) => {
      slow(fails(2, [], 200))(history)
      history.faults.push(kill(SENT + 690, SENT + 702))
      history.deliveries[1] = { ...history.deliveries[1]!, status: 0 }
    }
    expect(broken(third)).to.deep.equal([])
  })

  it('counts none that arrived behind the kill of its sender', () => {
    const late = (closedAfterMs: number | null) => (history: History) => {
      slow(fails(2, [kill(SENT + 690, SENT + 695)], 200))(history)
      const first = history.deliveries[1]!
      const closedAt = closedAfterMs === null ? null : first.answeredAt + closedAfterMs
      history.deliveries[1] = { ...first, closedAt }
    }
    expect(broken(late(20))).to.deep.equal([])
    expect(broken(late(null)), 'its sender lives').to.deep.equal(['back-off'])
  })

  it('takes what was given up for no attempt that was begun early', () => {
    const givenUp = (sealedAt: number) => (history: History) => {
      slow(fails(1, [], 10))(history)
      history.commits = [commit(2, { at: sealedAt }), commit(20, { at: sealedAt, records: ['seal'] })]
      const last = history.deliveries.at(-1)!
      history.deliveries.splice(-1, 1, { ...last, closedAt: last.answeredAt + 100 })
    }
    expect(broken(givenUp(SENT - 10_000)), 'an earlier one that came late').to.deep.equal([])
    expect(broken(givenUp(SENT))).to.deep.equal(['back-off'])
  })

  it('goes by the shortest that held meanwhile', () => {
    const shorter = (askedAt: number) => (history: History) => {
      slow(fails(1, [], 100))(history)
      const backoff = { initialMs: 100, maxMs: 100, multiplier: 1 }
      history.changes.push(changed({ backoff }, { askedAt, answeredAt: null }))
    }
    expect(broken(shorter(SENT + 750))).to.deep.equal([])
    expect(broken(shorter(SENT + 5_000))).to.deep.equal(['back-off'])
  })
})
