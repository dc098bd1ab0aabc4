import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { LeaseTable } from '../../internal/nats/leases/lease-table.ts'
import { leaseTimes } from '../../internal/nats/leases/lease-times.ts'
import { leaseOf } from './lease-members.ts'

/** Heartbeat 1,000; patience 5,500; unsure 6,000; silence 2,000. */
const times = leaseTimes(5_000)

describe('the table of leases', () => {
  let table: LeaseTable

  beforeEach(() => {
    table = new LeaseTable(times)
    table.began(0)
  })

  /** Own renewals come back each second from `from` to `to`, and with them those of `living`. */
  function pass(from: number, to: number, ...living: string[]): void {
    for (let at = from; at <= to; at += 1_000) {
      for (const boot of living) table.stands(leaseOf(boot), at)
      table.proven(at)
    }
  }

  it('keeps who renews, with what it says, and tells news from renewals', () => {
    expect(table.stands(leaseOf('a'), 10)).to.equal(true)
    expect(table.stands(leaseOf('a'), 1_010)).to.equal(false)
    expect(table.stands(leaseOf('a', [3]), 2_010)).to.equal(true)
    expect(table.stands(leaseOf('b'), 2_020)).to.equal(true)
    expect(table.leases()).to.deep.equal([leaseOf('a', [3]), leaseOf('b')])
  })

  it('takes nobody for gone before TTL + 1 s, then everybody who was never seen', () => {
    pass(0, 5_000)
    expect(table.isGone('x', 5_000)).to.equal(false)
    expect(table.proven(5_999)).to.equal(false)
    expect(table.isGone('x', 5_999)).to.equal(false)
    expect(table.proven(6_000), 'certainty is news').to.equal(true)
    expect(table.isGone('x', 6_000)).to.equal(true)
  })

  it('lets a lease go when a renewal that began TTL + margin after its last one came back', () => {
    pass(0, 10_000, 'a', 'b')
    pass(11_000, 15_000, 'b')
    expect(table.proven(15_499)).to.equal(false)
    expect(table.isGone('a', 15_499)).to.equal(false)
    expect(table.proven(15_500)).to.equal(true)
    expect(table.isGone('a', 15_500)).to.equal(true)
    expect(table.leases()).to.deep.equal([leaseOf('b')])
  })

  it('concludes nothing from the time that passed: only from what came back', () => {
    pass(0, 10_000, 'a')
    expect(table.isGone('a', 60_000)).to.equal(false)
    expect(table.isGone('x', 60_000)).to.equal(false)
  })

  it('gives everybody time anew when it stood still itself, however much news waits', () => {
    pass(0, 10_000, 'a')
    // Its own renewal of before the pause, then one of after it; those of `a` lie behind them in the socket.
    table.proven(10_900)
    table.proven(70_000)
    expect(table.isGone('a', 70_000)).to.equal(false)
    pass(71_000, 75_000)
    expect(table.leases().length).to.equal(1)
    table.stands(leaseOf('a'), 75_500)
    pass(76_000, 76_000)
    expect(table.isGone('a', 76_000)).to.equal(false)
    expect(table.isGone('x', 76_000)).to.equal(true)
  })

  it('is not sure of anybody while proofs stay away', () => {
    pass(0, 8_000)
    expect(table.isGone('x', 8_000)).to.equal(true)
    expect(table.isGone('x', 10_000)).to.equal(true)
    expect(table.isGone('x', 10_001)).to.equal(false)
  })

  it('answers the first question about a boot only as of a later moment', () => {
    pass(0, 7_000)
    expect(table.isGone('x', 7_500)).to.equal(false)
    expect(table.nextJudgement).to.equal(7_500)
    expect(table.proven(7_499)).to.equal(false)
    expect(table.isGone('x', 7_600)).to.equal(false)
    expect(table.proven(7_500), 'an answer is news').to.equal(true)
    expect(table.isGone('x', 7_600)).to.equal(true)
    table.stands(leaseOf('x'), 7_700)
    expect(table.isGone('x', 7_700)).to.equal(false)
  })

  it('lets a released one go at once and for good, also without a watch', () => {
    table.stands(leaseOf('a'), 100)
    expect(table.released('a', 200)).to.equal(true)
    expect(table.isGone('a', 200)).to.equal(true)
    expect(table.leases()).to.deep.equal([])
    expect(table.released('a', 300)).to.equal(false)
    table.lost()
    expect(table.isGone('a', 400)).to.equal(true)
    table.began(500)
    pass(1_000, 20_000)
    expect(table.isGone('a', 20_000)).to.equal(true)
  })

  it('starts anew after a gap: who stood stands, and nobody is gone', () => {
    pass(0, 10_000, 'a')
    expect(table.isGone('x', 10_000)).to.equal(true)
    table.lost()
    expect(table.isGone('x', 10_000)).to.equal(false)
    expect(table.proven(10_500)).to.equal(false)
    expect(table.leases()).to.deep.equal([leaseOf('a')])
    table.began(20_000)
    pass(20_000, 25_000)
    expect(table.isGone('a', 25_000)).to.equal(false)
    expect(table.isGone('x', 25_000)).to.equal(false)
    pass(26_000, 26_000)
    expect(table.isGone('a', 26_000)).to.equal(true)
    expect(table.isGone('x', 26_000)).to.equal(true)
  })

  it('is complete when a renewal came back that began after the watch', () => {
    table.began(1_000)
    expect(table.complete).to.equal(false)
    table.proven(999)
    expect(table.complete).to.equal(false)
    table.proven(1_001)
    expect(table.complete).to.equal(true)
    table.lost()
    expect(table.complete).to.equal(false)
  })

  it('names the moment that decides something next', () => {
    expect(table.nextJudgement).to.equal(6_000)
    pass(0, 8_000, 'a')
    expect(table.nextJudgement).to.equal(13_500)
    table.released('a', 8_100)
    expect(table.nextJudgement).to.equal(undefined)
    table.lost()
    expect(table.nextJudgement).to.equal(undefined)
  })
})

describe('the spans of a lease', () => {
  it('are the documented ones, and fit each other', () => {
    expect(times).to.deep.include({ ttlMs: 5_000, heartbeatMs: 1_000, jitterMs: 100, unsureMs: 6_000 })
    for (const ttlMs of [500, 5_000, 60_000]) {
      const { heartbeatMs, jitterMs, writeMs, marginMs } = leaseTimes(ttlMs)
      expect(writeMs).to.be.below(heartbeatMs - jitterMs)
      expect(3 * heartbeatMs + writeMs).to.be.below(ttlMs - marginMs)
    }
  })

  it('need a TTL that a broker and a network can keep', () => {
    for (const ttlMs of [0, 499, 60_001, Number.NaN]) {
      expect(() => leaseTimes(ttlMs)).to.throw(RangeError, `not the TTL of a lease: ${ttlMs} ms`)
    }
  })
})
