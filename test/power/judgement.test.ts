/** What a cut of an interval may take, and what not even that may. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Delivery, Fault, History, SentItem } from '../faults/history.ts'
import { batchItem, delivery, sentItem, sound } from '../faults/sample-history.ts'
import { checkRepaired, cutOf, lostOf, withdraw } from './judgement.ts'

const CUT_AT = 1_000_000
const CUT = cutOf('nats-cut', CUT_AT, 5_000)

describe('the judgement of a power cut without sync', () => {
  it('forgives the loss of what was accepted in the interval, and counts it', () => {
    const history = historyOf(accepted(1, CUT_AT - 100), accepted(2, CUT_AT - 60_000))
    deliver(history, 2)
    const withdrawn = withdraw(history, CUT)
    expect(withdrawn.map(({ item, ageMs }) => [item.n, ageMs])).to.deep.equal([[1, 100]])
    expect(checkRepaired(history)).to.deep.equal([])
    expect(lostOf(history, withdrawn).map(({ item }) => item.n)).to.deep.equal([1])
  })

  it('forgives no loss of what is older, and of what came after the cut', () => {
    const history = historyOf(accepted(1, CUT_AT - 60_000), accepted(2, CUT_AT + 1))
    expect(withdraw(history, CUT)).to.deep.equal([])
    const found = checkRepaired(history).flatMap(({ rule, detail }) =>
      rule === 'lost' ? [(detail as SentItem).n] : [],
    )
    expect(found).to.deep.equal([1, 2])
  })

  it('forgives the loss of what was sent before the cut and answered behind it', () => {
    const history = historyOf({ ...accepted(1, CUT_AT + 900), sentAt: CUT_AT - 100 })
    const withdrawn = withdraw(history, CUT)
    expect(checkRepaired(history)).to.deep.equal([])
    expect(lostOf(history, withdrawn).map(({ ageMs }) => ageMs)).to.deep.equal([0])
  })

  it('forgives that what is lost stays charged, and no credit more', () => {
    const history = historyOf(accepted(1, CUT_AT - 100))
    const withdrawn = withdraw(history, CUT)
    history.credits = { granted: 10, left: 9, booked: { b: 1 }, refunded: 0 }
    expect(checkRepaired(history, withdrawn)).to.deep.equal([])
    history.credits = { granted: 10, left: 8, booked: { b: 2 }, refunded: 0 }
    const rules = new Set(checkRepaired(history, withdrawn).map(({ rule }) => rule))
    expect([...rules]).to.deep.equal(['overcharged'])
  })

  it('forgives that an id which was lost is charged again when it comes again', () => {
    const lost = { ...accepted(1, CUT_AT - 100), messageId: 'm-1' }
    const history = historyOf(lost, { ...accepted(2, CUT_AT + 60_000), messageId: 'm-1' })
    const withdrawn = withdraw(history, CUT)
    deliver(history, 2)
    Object.assign(history.deliveries[0]!.items[0]!, { messageId: 'm-1' })
    history.credits = { granted: 10, left: 8, booked: { b: 2 }, refunded: 0 }
    expect(checkRepaired(history, withdrawn)).to.deep.equal([])
    history.credits = { granted: 10, left: 7, booked: { b: 3 }, refunded: 0 }
    expect(checkRepaired(history, withdrawn).map(({ rule }) => rule)).to.include('overcharged')
  })

  it('forgives an item twice in a batch behind a cut, and none without it or that was never sent', () => {
    const history = historyOf(accepted(1, CUT_AT - 60_000))
    deliver(history, 1)
    const [batch] = history.deliveries
    Object.assign(batch!, { items: [batch!.items[0]!, batch!.items[0]!] })
    Object.assign(batch!.window, { itemsCount: 2 })
    expect(checkRepaired(history).map(({ rule }) => rule)).to.include('invented')
    history.faults.push({ ...CUT })
    expect(checkRepaired(history).map(({ rule }) => rule)).to.not.include('invented')
    Object.assign(batch!, { items: [batch!.items[0]!, { ...batch!.items[0]!, payloadHash: 'another' }] })
    expect(checkRepaired(history).map(({ rule }) => rule)).to.include('invented')
  })

  it('forgives a duplicate that goes out behind a cut, and none without it or beside its original', () => {
    const original = { ...accepted(1, CUT_AT - 60_000), messageId: 'm-1' }
    const history = historyOf(original, { ...accepted(2, CUT_AT - 50_000), messageId: 'm-1' })
    for (const n of [1, 2]) deliver(history, n, n, { at: CUT_AT + 60_000 + n })
    for (const { items } of history.deliveries) Object.assign(items[0]!, { messageId: 'm-1' })
    const rules = () => checkRepaired(history).map(({ rule }) => rule)
    expect(rules()).to.include('duplicate-missed')
    history.faults.push({ ...CUT })
    expect(rules()).to.not.include('duplicate-missed')
    const [first, second] = history.deliveries
    Object.assign(first!, { items: [...first!.items, ...second!.items] })
    expect(rules()).to.include('duplicate-missed')
  })

  it('counts nothing that came out after all', () => {
    const history = historyOf(accepted(1, CUT_AT - 100))
    const withdrawn = withdraw(history, CUT)
    deliver(history, 1)
    expect(lostOf(history, withdrawn)).to.deep.equal([])
  })

  it('forgives a second key of an item, and never a second body of a key', () => {
    const history = historyOf(accepted(1, CUT_AT - 100))
    history.faults.push({ ...CUT })
    withdraw(history, CUT)
    deliver(history, 1, 1)
    deliver(history, 1, 2)
    expect(checkRepaired(history)).to.deep.equal([])
    deliver(history, 1, 2, { bodyHash: 'another' })
    expect(checkRepaired(history).map(({ rule }) => rule)).to.deep.equal(['two-bodies'])
  })

  it('forgives that a batch goes out again across the cut, and none without it', () => {
    const again = (...cuts: Fault[]) => {
      const at = CUT_AT - 1_000
      const history = historyOf(accepted(1, at - 1))
      history.faults.push(...cuts)
      deliver(history, 1, 1, { at })
      deliver(history, 1, 1, { at: CUT_AT + 1_000 })
      return checkRepaired(history).map(({ rule }) => rule)
    }
    expect(again({ ...CUT })).to.deep.equal([])
    expect(again()).to.deep.equal(['resent'])
  })
})

/** Of the one buffer and group of sample histories; nobody looks at the accounts. */
function historyOf(...sent: SentItem[]): History {
  return { ...sound(), sent, deliveries: [], credits: null }
}

function accepted(n: number, at: number): SentItem {
  return sentItem(n, { sentAt: at, answer: { at, status: 202, itemId: `id-${n}` } })
}

function deliver(history: History, n: number, version = n, more: Partial<Delivery> = {}): void {
  const { sentAt } = history.sent.find((item) => item.n === n)!
  const item = batchItem(n, { receivedAt: sentAt })
  history.deliveries.push(delivery(version, [item], { at: CUT_AT + 10_000 + version, ...more }))
}
