import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Accounts, Fault, History } from './history.ts'
import { accounts, batchItem, broken, delivery, duplicates, kill, SENT, sentItem } from './sample-history.ts'

const of = (kind: string): Fault => ({ ...kill(SENT + 42), kind })
const paid =
  (spent: number, faults: Fault[] = []) =>
  (history: History) => {
    history.faults.push(...faults)
    history.credits = accounts(spent)
  }

describe('the checker of credits', () => {
  it('catches a wrong charge, within what was in flight at a fault', () => {
    expect(broken(paid(5))).to.deep.equal(['overcharged'])
    expect(broken(paid(3))).to.deep.equal(['undercharged'])
    expect(broken(paid(5, [kill(SENT + 42)]))).to.deep.equal(['overcharged'])
    expect(broken(paid(3, [kill(SENT + 42)]))).to.deep.equal([])
    const by = (kind: string) => broken(paid(3, [of(kind)]))
    for (const kind of ['kill ingress-1', 'postgres-away', 'kill nats'])
      expect(by(kind), kind).to.deep.equal([])
    for (const kind of ['kill actor-1', 'freeze admin-1', 'destination-latency -'])
      expect(by(kind), kind).to.deep.equal(['undercharged'])
  })

  it('excuses by a fault of the node that took the item, and of no other', () => {
    const via = (kind: string) => (history: History) => {
      for (const [index, item] of history.sent.entries()) history.sent[index] = { ...item, via: 'ingress-1' }
      paid(3, [of(kind)])(history)
    }
    expect(broken(via('kill ingress-1'))).to.deep.equal([])
    expect(broken(via('kill ingress-2'))).to.deep.equal(['undercharged'])
  })

  /** The fourth item was told to come again, and was stored all the same. */
  const refused = (spent: number) => (history: History) => {
    paid(spent)(history)
    history.sent[3]!.answer = { at: SENT + 45, status: 503 }
  }

  it('takes what was told to come again for free, whatever became of it', () => {
    expect(broken(refused(3))).to.deep.equal([])
    expect(broken(refused(4))).to.deep.equal(['overcharged'])
  })

  it('catches a charged duplicate that a free item would make up for', () => {
    const hidden = (spent: number) => (history: History) => {
      history.sent.push(sentItem(3, { answer: { at: SENT + 35, status: 503 } }))
      history.deliveries[0] = delivery(10, [batchItem(1, { messageId: 'm' }), 3])
      history.credits = accounts(spent)
    }
    expect(broken(hidden(1), duplicates())).to.deep.equal([])
    expect(broken(hidden(2), duplicates())).to.deep.equal(['overcharged'])
  })

  it('charges what nobody answered when it went out and no fault explains that', () => {
    const unanswered = (spent: number, faults: Fault[]) => (history: History) => {
      paid(spent, faults)(history)
      history.sent[3]!.answer = null
    }
    expect(broken(unanswered(4, []))).to.deep.equal([])
    expect(broken(unanswered(3, []))).to.deep.equal(['undercharged'])
    expect(broken(unanswered(3, [{ ...kill(SENT + 20_000), kind: 'kill ingress-1' }]))).to.deep.equal([])
  })

  it('looks at each buffer by itself', () => {
    const booked = (own: Partial<Accounts>) => (history: History) => {
      history.credits = { ...accounts(4), ...own }
    }
    expect(broken(booked({ booked: { b: 3, other: 1 } }))).to.deep.equal(['undercharged'])
    expect(broken(booked({ booked: { b: 5 }, refunded: 1 })), 'a duplicate that came back').to.deep.equal([
      'overcharged',
    ])
    const crashed = (history: History) => {
      booked({ left: 97, booked: { b: 4 }, refunded: 1 })(history)
      history.faults.push(kill(SENT + 42))
    }
    expect(broken(crashed)).to.deep.equal([])
  })

  it('catches accounts that do not add up', () => {
    const uneven = (history: History) => {
      history.credits = { ...accounts(4), refunded: 1 }
    }
    expect(broken(uneven)).to.deep.equal(['sums'])
  })
})
