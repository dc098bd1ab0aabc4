import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Fault, History, StoredCommit } from './history.ts'
import {
  accounts,
  batchItem,
  broken,
  commit,
  deadLetter,
  delivery,
  duplicates,
  keyOf,
  kill,
  LONG,
  otherDelivery,
  SENT,
  sentItem,
} from './sample-history.ts'

const withId = (n: number) => batchItem(n, { messageId: 'm' })

describe('the checker of duplicates', () => {
  it('takes a batch for over when the record of it is stored', () => {
    const duplicateAfter =
      (...commits: StoredCommit[]) =>
      (history: History) => {
        history.commits = commits
        history.deliveries[0] = { ...history.deliveries[0]!, status: 400 }
        history.dead.push(deadLetter(history.deliveries[0]!, SENT + 610))
        Object.assign(history.sent[1]!, { sentAt: LONG, answer: { ...history.sent[1]!.answer, at: LONG } })
      }
    const [late, soon] = [LONG - 100, SENT + 620].map((at) => commit(7, { at, settled: [keyOf(10)] }))
    const first = commit(6)
    expect(broken(duplicateAfter(first, late!), duplicates())).to.deep.equal([])
    expect(broken(duplicateAfter(first, soon!), duplicates())).to.deep.equal(['duplicate-of-what-is-over'])
    expect(
      broken(duplicateAfter(first, soon!, late!), duplicates()),
      'the first record counts',
    ).to.not.deep.equal([])
    expect(broken(duplicateAfter(first), duplicates()), 'no record of it').to.deep.equal([
      'duplicate-of-what-is-over',
    ])
    const purged = commit(8, { at: LONG - 100 })
    expect(broken(duplicateAfter(purged), duplicates()), 'it was purged').to.deep.equal([])
  })

  it('catches a duplicate that is sent, or whose original is lost', () => {
    const sendsBoth = (history: History) => history.deliveries.push(delivery(20, [withId(2)]))
    expect(broken(sendsBoth, duplicates())).to.include('duplicate-sent')
    expect(broken((history) => history.deliveries.pop(), duplicates())).to.include('original-lost')
  })

  it('catches a drop long after the original was delivered', () => {
    const later = (faults: Fault[]) => (history: History) => {
      history.faults.push(...faults)
      const answer = { at: LONG, status: 202, itemId: 'id-1', duplicate: true }
      Object.assign(history.sent[1]!, { sentAt: LONG, answer })
    }
    expect(broken(later([]), duplicates())).to.deep.equal(['duplicate-of-what-is-over'])
    expect(broken(later([kill(SENT + 600)]), duplicates()), 'but for long').to.deep.equal([
      'duplicate-of-what-is-over',
    ])
    expect(
      broken(later([kill(SENT + 600, LONG - 100)]), duplicates()),
      'the record was cut off',
    ).to.deep.equal([])
  })

  it('catches a duplicate of an item that nobody sent', () => {
    const named = (itemId: string) => (history: History) => {
      history.sent[1]!.answer = { ...history.sent[1]!.answer!, itemId }
    }
    expect(broken(named('id-1'), duplicates())).to.deep.equal([])
    expect(broken(named('id-9'), duplicates())).to.deep.equal(['duplicate-of-nothing'])
  })

  /** Sent at `sentAt` and answered as a new item, the second one goes out behind the first. */
  const bothSent = (sentAt: number) => (history: History) => {
    const receivedAt = sentAt + 1
    history.sent[1] = sentItem(2, {
      messageId: 'm',
      sentAt,
      answer: { at: sentAt + 5, status: 202, itemId: 'id-2' },
    })
    history.deliveries.push(
      delivery(50, [batchItem(2, { messageId: 'm', receivedAt })], { at: LONG + 2_000 }),
    )
    history.credits = accounts(2)
  }

  it('catches duplicates that were buffered together and both sent', () => {
    const bothLater = (history: History) => {
      bothSent(SENT + 20)(history)
      Object.assign(history.deliveries[0]!, { at: LONG })
    }
    expect(broken(bothLater, duplicates())).to.deep.equal(['duplicate-missed'])
    const cutOff = (to: number) => (history: History) => {
      bothLater(history)
      history.faults.push({ kind: 'nats-blackhole nats-2', from: SENT + 10, to })
    }
    expect(broken(cutOff(LONG - 100), duplicates()), 'perhaps not read before').to.deep.equal([])
    expect(broken(cutOff(SENT + 600), duplicates()), 'read behind it').to.deep.equal(['duplicate-missed'])
    const together = (history: History) => {
      history.sent[1]!.answer = null
      history.deliveries.splice(0, 1, delivery(10, [withId(1), withId(2)]))
      history.credits = null
    }
    expect(broken(together, duplicates())).to.deep.equal(['duplicate-missed'])
  })

  it('catches one that was sent while its original was in back-off, when both are delivered', () => {
    const inBackoff =
      (sentAt: number, faults: Fault[] = []) =>
      (history: History) => {
        bothSent(sentAt)(history)
        history.faults.push(...faults)
        history.deliveries.splice(
          0,
          1,
          delivery(10, [withId(1)], { status: 500 }),
          delivery(10, [withId(1)], { at: LONG }),
        )
      }
    expect(broken(inBackoff(SENT + 10_000), duplicates())).to.deep.equal(['duplicate-missed'])
    expect(broken(inBackoff(LONG - 100), duplicates()), 'perhaps not read before the end').to.deep.equal([])
    expect(
      broken(inBackoff(SENT + 10_000, [kill(SENT + 20_000)]), duplicates()),
      'perhaps not read at the fault',
    ).to.deep.equal([])
  })

  it('knows that it was read when something behind it in the log was sealed before the original was over', () => {
    /** Another item of the shard, sent at `sentAt`, is sealed as `version`; the original is over at 40. */
    const beside = (sentAt: number, version: number) => (history: History) => {
      const answer = { at: sentAt + 5, status: 202, itemId: 'id-3' }
      bothSent(LONG - 100)(history)
      history.deliveries.splice(
        0,
        1,
        delivery(10, [withId(1)], { status: 500 }),
        delivery(10, [withId(1)], { at: LONG }),
      )
      history.sent.push(sentItem(3, { groupKey: 'h', sentAt, answer }))
      const other = { ...otherDelivery(version, [3]), at: LONG + 1 }
      const items = [batchItem(3, { receivedAt: sentAt + 1 })]
      const window = { firstItemAt: sentAt + 1, lastActivityAt: sentAt + 1, itemsCount: 1 }
      history.deliveries.push({ ...other, items, window })
      history.commits = [commit(2), commit(40, { at: LONG + 10, settled: [keyOf(10)] })]
      history.credits = null
    }
    expect(broken(beside(LONG - 95, 39), duplicates())).to.deep.equal(['duplicate-missed'])
    expect(broken(beside(LONG - 95, 41), duplicates()), 'sealed behind that record').to.deep.equal([])
    expect(broken(beside(LONG - 96, 39), duplicates()), 'perhaps before it in the log').to.deep.equal([])
  })
})
