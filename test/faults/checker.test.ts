import { expect } from 'chai'
import { describe, it } from 'mocha'

import { readKey } from './batch-key.ts'
import type { Delivery, Fault, History } from './history.ts'
import {
  broken,
  claim,
  commit,
  deadLetter,
  delivery,
  duplicates,
  keyOf,
  kill,
  LONG,
  rulesOf,
  SENT,
  sound,
} from './sample-history.ts'

describe('the checker of fault runs', () => {
  it('finds nothing in a sound history', () => {
    expect(rulesOf(sound())).to.deep.equal([])
    expect(rulesOf(duplicates())).to.deep.equal([])
  })

  it('catches an accepted item that went nowhere', () => {
    const rules = broken((history) => history.deliveries.pop())
    expect(rules).to.include('lost')
    expect(broken((history) => Object.assign(history.deliveries[1]!, { status: 500 }))).to.include('lost')
  })

  it('takes the dead letter queue for an arrival', () => {
    const dies = (history: History) => {
      history.deliveries[1] = { ...history.deliveries[1]!, status: 400 }
      history.dead.push(deadLetter(history.deliveries[1]!, SENT + LONG))
    }
    expect(broken(dies)).to.deep.equal([])
  })

  it('catches what is left buffered', () => {
    expect(broken((history) => Object.assign(history, { buffered: 1 }))).to.deep.equal(['left-buffered'])
  })

  it('catches two bodies under one key, and one item under two keys', () => {
    const again = (change: object) => (history: History) => {
      history.faults.push(kill(SENT + 600))
      history.deliveries.splice(1, 0, { ...delivery(10, [1, 2]), at: SENT + 650, ...change })
    }
    expect(broken(again({}))).to.deep.equal([])
    expect(broken(again({ bodyHash: 'other' }))).to.include('two-bodies')
    expect(broken(again({ key: keyOf(11), bodyHash: 'body-11' }))).to.include('two-keys')
  })

  it('catches batches and items out of order', () => {
    const late = (history: History) => history.deliveries.reverse()
    expect(broken(late)).to.include('batch-order')
    const swapped = (history: History) => {
      const [first, second] = history.deliveries as [Delivery, Delivery]
      history.deliveries.splice(0, 2, { ...first, items: second.items }, { ...second, items: first.items })
    }
    expect(broken(swapped)).to.include('item-order')
    const unknown = (history: History) => {
      swapped(history)
      for (const item of history.sent.slice(2)) item.answer = null
    }
    expect(broken(unknown), 'unanswered requests have no known place').not.to.include('item-order')
  })

  it('lets a batch come late, and once more, that was held back while others went on; never at first', () => {
    const held = { ...kill(SENT + 600, SENT + 5_000), heldUntil: SENT + 2_000 }
    const again = (fault: Fault, at: number) => (history: History) => {
      history.faults.push(fault)
      history.deliveries.push(delivery(10, [1, 2], { at }))
    }
    expect(broken(again(held, SENT + 2_100))).to.deep.equal([])
    expect(broken(again(kill(SENT + 600, SENT + 5_000), SENT + 2_100)), 'it holds nothing').to.include(
      'batch-order',
    )
    expect(broken(again(held, SENT + 4_100)), 'long after its release').to.include('batch-order')
    const stalled = (history: History) => {
      again(held, SENT + 4_100)(history)
      history.stalls.push({ from: SENT + 2_000, to: SENT + 3_900 })
    }
    expect(broken(stalled), 'the machine stood still meanwhile').to.deep.equal([])
    const afterwards = { ...held, from: SENT + 800 }
    expect(broken(again(afterwards, SENT + 2_100)), 'overtaken before it').to.include('batch-order')
    const first = (history: History) => {
      history.faults.push(held)
      history.deliveries.reverse()
    }
    expect(broken(first)).to.deep.equal(['batch-order'])
  })

  it('catches a commit of an owner after the claim of another', () => {
    const commits = [claim(5, 'a'), commit(6, { epoch: 5, boot: 'a', records: ['seal'] }), claim(7, 'b')]
    const write =
      (...more: typeof commits) =>
      (history: History) => {
        history.commits = [...commits, ...more]
      }
    expect(broken(write(commit(8, { epoch: 7, boot: 'b', records: ['seal'] })))).to.deep.equal([])
    expect(broken(write(commit(8, { epoch: 5, boot: 'a', records: ['done'] })))).to.deep.equal([
      'stale-owner',
    ])
  })

  it('reads an idempotency key, and no other text', () => {
    expect(readKey(keyOf(12))).to.deep.equal({ groupId: 'A'.repeat(22), version: 12 })
    for (const key of ['', 'grp:g:v1', keyOf(0), `${keyOf(1)}x`, keyOf(1).replace('grp', 'Grp')])
      expect(readKey(key), key).to.equal(null)
  })
})
