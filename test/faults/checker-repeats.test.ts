import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Fault, History, StoredCommit } from './history.ts'
import { broken, claim, commit, deadLetter, delivery, keyOf, kill, LONG, SENT } from './sample-history.ts'

/** The journal of the one shard: `actor-1` claimed it, and then whoever else. */
function owned(history: History, ...more: StoredCommit[]): void {
  history.commits = [claim(1, 'a'), ...more]
  history.claims = [
    { shard: 0, epoch: 1, node: 'actor-1' },
    { shard: 0, epoch: 30, node: 'actor-3' },
  ]
}

/** The second batch comes again at `at`. */
function again(faults: Fault[], at: number, ...journal: StoredCommit[]) {
  return (history: History) => {
    if (journal.length > 0) owned(history, ...journal)
    history.faults.push(...faults)
    history.deliveries.push(delivery(20, [3, 4], { at }))
  }
}

const AT = SENT + 20_000
const of = (kind: string, from = SENT + 710): Fault => ({ ...kill(from, from + 5_000), kind })
/** Another one takes the shard over meanwhile. */
const TAKE_OVER = claim(30, 'c', SENT + 6_000)

describe('the checker of repetitions', () => {
  it('catches a second delivery after a 2xx that no fault explains', () => {
    expect(broken(again([], SENT + 2_000))).to.deep.equal(['resent'])
    expect(broken(again([kill(SENT + 710)], SENT + 2_000))).to.deep.equal([])
    expect(broken(again([kill(SENT + 3_000)], SENT + 2_000)), 'the fault came later').to.include('resent')
    const by = (kind: string) => broken(again([of(kind)], SENT + 2_000))
    for (const kind of ['kill actor-2', 'nats-down actor-1', 'freeze nats', 'destination-reset -'])
      expect(by(kind), kind).to.deep.equal([])
    for (const kind of ['freeze admin-1', 'nats-up ingress-2', 'postgres-reset actor-1', 'postgres-away'])
      expect(by(kind), kind).to.deep.equal(['resent'])
  })

  it('catches one behind the record of the answer, whatever fault there was', () => {
    const recorded = (at: number) => commit(25, { at, settled: [keyOf(20)] })
    const behind = (at: number, fault = of('kill actor-1')) =>
      broken(again([fault], AT, recorded(at), TAKE_OVER))
    expect(behind(AT)).to.deep.equal([])
    expect(behind(SENT + 800)).to.deep.equal(['resent'])
    const held = { ...of('freeze actor-1'), from: SENT + 750, heldUntil: AT - 100 }
    expect(behind(SENT + 800, held), 'it was on its way').to.deep.equal([])
  })

  it('catches one that is excused by a fault of a node that had not its shard', () => {
    const cutting = (kind: string) => broken(again([of(kind)], AT, TAKE_OVER))
    expect(cutting('kill actor-1'), 'the owner').to.deep.equal([])
    expect(cutting('kill actor-3'), 'the next owner').to.deep.equal([])
    expect(cutting('kill nats'), 'the broker').to.deep.equal([])
    expect(cutting('kill actor-2')).to.deep.equal(['resent'])
    const late = claim(30, 'c', AT + 20_000)
    expect(broken(again([of('kill actor-3')], AT, late)), 'its owner later').to.deep.equal(['resent'])
    const unknown = claim(30, 'd', SENT + 6_000)
    const nameless = (history: History) => {
      again([of('kill actor-2')], AT, unknown)(history)
      history.claims.pop()
    }
    expect(broken(nameless), 'an owner that nobody knows').to.deep.equal([])
  })

  it('catches one by the same owner, and more of them than there were claims', () => {
    const fault = of('freeze nats')
    const other = commit(31, { epoch: 1 })
    expect(broken(again([fault], AT, other)), 'nobody took the shard over').to.deep.equal(['resent'])
    const twice = (history: History) => {
      again([fault], AT, TAKE_OVER)(history)
      history.deliveries.push(delivery(20, [3, 4], { at: AT + 10 }))
    }
    expect(broken(twice)).to.include('resent')
    expect(broken(again([of('destination-reset -')], AT, other)), 'it heard no answer').to.deep.equal([])
    expect(broken(again([of('freeze actor-1')], AT, other)), 'the answer was overdue').to.deep.equal([])
    expect(broken(again([of('freeze actor-1')], SENT + 2_000, other))).to.deep.equal(['resent'])
  })

  /** Sealed at `sealedAt`, the second batch comes twice; one of its connections was closed `afterMs` behind the answer. */
  const givenUp = (which: 1 | 2, afterMs: number, sealedAt: number) => (history: History) => {
    history.deliveries.push(delivery(20, [3, 4], { at: SENT + 900 }))
    history.commits = [commit(2, { at: sealedAt }), commit(20, { at: sealedAt, records: ['seal'] })]
    const given = history.deliveries[which]!
    history.deliveries[which] = { ...given, closedAt: given.answeredAt + afterMs }
  }

  it('lets come again what was given up when its time was over, in either order', () => {
    const longAgo = SENT - 10_000
    for (const which of [1, 2] as const) {
      expect(broken(givenUp(which, 600, longAgo)), `${which}`).to.deep.equal([])
      expect(broken(givenUp(which, 600, SENT)), `${which}, too early`).to.deep.equal(['resent'])
      expect(broken(givenUp(which, 4_000, longAgo)), `${which}, idle`).to.deep.equal(['resent'])
    }
  })

  it('lets come again what was answered while its sender stood still, and was overdue when it went on', () => {
    const stoodStill = (sealedAt: number, from: number, closedAfterMs: number) => (history: History) => {
      history.deliveries.push(delivery(20, [3, 4], { at: SENT + 6_100 }))
      const first = history.deliveries[1]!
      const heldUntil = SENT + 5_700
      history.deliveries[1] = { ...first, closedAt: heldUntil + closedAfterMs }
      history.faults.push({ kind: 'freeze actor-1', from, to: SENT + 7_000, heldUntil })
      owned(history, commit(20, { at: sealedAt, records: ['seal'] }))
    }
    const [longAgo, meanwhile] = [SENT - 5_000, SENT + 710]
    expect(broken(stoodStill(longAgo, meanwhile, 20))).to.deep.equal([])
    expect(broken(stoodStill(SENT, meanwhile, 20)), 'too early').to.deep.equal(['resent'])
    expect(broken(stoodStill(longAgo, meanwhile, 4_000)), 'idle').to.deep.equal(['resent'])
    expect(broken(stoodStill(longAgo, meanwhile, -3_000)), 'closed before').to.deep.equal(['resent'])
    expect(broken(stoodStill(longAgo, SENT + 5_000, 20)), 'answered before').to.deep.equal(['resent'])
  })

  it('lets come again what arrived behind the kill of its sender, and was closed at once', () => {
    const arrived = (afterMs: number, closedAfterMs: number | null) => (history: History) => {
      history.deliveries.push(delivery(20, [3, 4], { at: SENT + 9_000 }))
      const first = history.deliveries[1]!
      const closedAt = closedAfterMs === null ? null : first.answeredAt + closedAfterMs
      history.deliveries[1] = { ...first, closedAt }
      history.faults.push(kill(first.at - afterMs))
      owned(history, commit(20, { at: first.at - 500, records: ['seal'] }), TAKE_OVER)
    }
    expect(broken(arrived(400, 20))).to.deep.equal([])
    expect(broken(arrived(400, null)), 'its sender lives').to.deep.equal(['resent'])
    expect(broken(arrived(400, 4_000)), 'idle').to.deep.equal(['resent'])
    expect(broken(arrived(31_000, 20)), 'the kill was long ago').to.deep.equal(['resent'])
  })

  it('takes a long stall of the machine for a fault, and a short one for none', () => {
    const stalled = (ms: number) => (history: History) => {
      again([], AT, TAKE_OVER)(history)
      history.stalls.push({ from: SENT + 720, to: SENT + 720 + ms })
    }
    expect(broken(stalled(6_000))).to.deep.equal([])
    expect(broken(stalled(1_000))).to.deep.equal(['resent'])
  })

  it('catches a batch that is sent after its dead letter was stored', () => {
    const deadAt = (createdAt: number) => (history: History) => {
      history.deliveries[0] = { ...history.deliveries[0]!, status: 400 }
      history.dead.push(deadLetter(history.deliveries[0]!, createdAt))
    }
    expect(broken(deadAt(SENT + LONG))).to.deep.equal([])
    expect(broken(deadAt(SENT))).to.include('sent-after-dead')
  })

  it('lets an attempt come behind its dead letter that was held back meanwhile', () => {
    const held = { ...kill(SENT + 600, SENT + 5_000), heldUntil: SENT + 2_000 }
    const afterDeath = (fault: Fault) => (history: History) => {
      history.faults.push(fault)
      history.deliveries[1] = { ...history.deliveries[1]!, status: 400 }
      history.dead.push(deadLetter(history.deliveries[1]!, SENT + 1_900))
      history.deliveries.push(delivery(20, [3, 4], { status: 400, at: SENT + 2_100 }))
    }
    expect(broken(afterDeath(held))).to.deep.equal([])
    expect(broken(afterDeath(kill(SENT + 600, SENT + 5_000)))).to.deep.equal(['sent-after-dead'])
    expect(broken(afterDeath({ ...held, from: SENT + 1_950 })), 'died before').to.deep.equal([
      'sent-after-dead',
    ])
  })

  it('catches a batch that is dead although its destination took it', () => {
    const deadAt =
      (status: number, faults: Fault[], journal: StoredCommit[] = []) =>
      (history: History) => {
        owned(history, ...journal)
        history.deliveries[0] = { ...history.deliveries[0]!, status }
        history.faults.push(...faults)
        history.dead.push(deadLetter(history.deliveries[0]!))
      }
    expect(broken(deadAt(200, []))).to.deep.equal(['dead-after-ack'])
    expect(broken(deadAt(400, []))).to.deep.equal([])
    const before = SENT + 500
    expect(broken(deadAt(200, [of('kill actor-1', before)])), 'its answer did not come back').to.deep.equal(
      [],
    )
    expect(broken(deadAt(200, [of('kill actor-2', before)]))).to.deep.equal(['dead-after-ack'])
    const done = commit(15, { at: SENT + 610, settled: [keyOf(10)] })
    expect(broken(deadAt(200, [of('kill actor-1', before)], [done])), 'it was recorded').to.deep.equal([
      'dead-after-record',
    ])
  })
})
