import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Outage } from '../../../operator/controller/outage.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { seededFractions } from '../../support/seeded.ts'

/** Longest time to the next probe, ms. */
const PROBE = 3_750

function fixture() {
  const clock = new ManualClock()
  const retried: string[] = []
  const outage = new Outage({
    clock,
    randomness: { fraction: seededFractions(7) },
    retry: (key) => retried.push(key),
    onReturn: () => {},
  })
  /** What was retried since. */
  const news = () => retried.splice(0)
  return { clock, outage, news }
}

describe('a service that is away', () => {
  it('is asked for one key at a time, each in its turn', () => {
    const { clock, outage, news } = fixture()
    for (const key of ['a', 'b', 'c']) outage.missed(key)
    expect(news()).to.deep.equal([])
    const asked: string[] = []
    for (let n = 0; n < 6; n++) {
      clock.advance(PROBE)
      const keys = news()
      expect(keys).to.have.length(1)
      asked.push(...keys)
      outage.missed(keys[0]!)
    }
    expect(asked).to.deep.equal(['a', 'b', 'c', 'a', 'b', 'c'])
  })

  it('and back, is asked for all of them at once, and then for none', () => {
    const { clock, outage, news } = fixture()
    for (const key of ['a', 'b', 'c']) outage.missed(key)
    outage.answered()
    expect(news()).to.deep.equal(['a', 'b', 'c'])
    expect(outage.returns).to.equal(1)
    outage.answered()
    clock.advance(60_000)
    expect(news()).to.deep.equal([])
    expect(outage.returns).to.equal(1)
    expect(clock.pending).to.equal(0)
  })

  it('is not taken for back by each answer while most of what is tried fails again', () => {
    const { clock, outage, news } = fixture()
    const keys = Array.from({ length: 10 }, (_, n) => `key-${n}`)
    const pauses: number[] = []
    for (const key of keys) outage.missed(key)
    outage.answered()
    let returnedAt = clock.monotonic()
    for (let n = 0; n < 6; n++) {
      news()
      for (const key of keys) outage.missed(key)
      const before = outage.returns
      while (outage.returns === before) {
        outage.answered()
        clock.advance(500)
      }
      pauses.push(clock.monotonic() - returnedAt)
      returnedAt = clock.monotonic()
    }
    // To half a second, and as long as it was when it began.
    expect(pauses.map((ms) => Math.floor(ms / 1_000))).to.deep.equal([5, 10, 20, 40, 60, 60])
  })

  it('is taken for back soon again once what was tried succeeds', () => {
    const { clock, outage, news } = fixture()
    outage.missed('a')
    outage.answered()
    outage.missed('a')
    outage.answered()
    clock.advance(5_000)
    expect(outage.returns).to.equal(2)
    clock.advance(60_000)
    news()
    outage.missed('b')
    outage.answered()
    expect(news()).to.deep.equal(['b'])
  })

  it('is not asked for what is gone, nor after the end', () => {
    const { clock, outage, news } = fixture()
    outage.missed('a')
    outage.forget('a')
    clock.advance(2 * PROBE)
    expect(clock.pending).to.equal(0)
    outage.missed('b')
    outage.close()
    outage.answered()
    clock.advance(2 * PROBE)
    expect(news()).to.deep.equal([])
  })
})
