import { expect } from 'chai'
import { describe, it } from 'mocha'
import { TokenBuckets } from '../../internal/runtime/token-buckets.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

describe('runtime: token buckets', () => {
  function bucketsOf(perSecond: number, burst: number) {
    const clock = new ManualClock()
    const buckets = new TokenBuckets({ clock, perSecond, burst })
    /** Tokens that can be had at once. */
    const drain = (name: string) => {
      let taken = 0
      while (taken < 10_000 && buckets.take(name) === 0) taken++
      return taken
    }
    return { clock, buckets, drain }
  }

  it('give a burst at once, then one token after the other', () => {
    const { clock, buckets, drain } = bucketsOf(10, 5)
    expect(drain('a')).to.equal(5)
    expect(buckets.take('a')).to.equal(100)
    clock.advance(60)
    expect(buckets.take('a'), 'what is left of the wait').to.be.closeTo(40, 1e-6)
    clock.advance(40)
    expect(drain('a')).to.equal(1)
    clock.advance(250)
    expect(drain('a')).to.equal(2)
  })

  it('are full again, and no more than that, after any rest', () => {
    const { clock, drain } = bucketsOf(10, 5)
    drain('a')
    for (const rest of [500, 10_000, 86_400_000]) {
      clock.advance(rest)
      expect(drain('a'), `after ${rest} ms`).to.equal(5)
    }
  })

  it('let no more through over any time than the rate and one burst', () => {
    const { clock, buckets } = bucketsOf(7, 3)
    let taken = 0
    for (let ms = 0; ms < 60_000; ms += 10) {
      if (buckets.take('a') === 0) taken++
      clock.advance(10)
    }
    expect(taken).to.be.within(60 * 7, 60 * 7 + 3)
  })

  it('count each name by itself', () => {
    const { drain } = bucketsOf(1, 2)
    expect([drain('a'), drain('b'), drain('a')]).to.deep.equal([2, 2, 0])
  })

  it('can be spent in advance: the tokens that come pay for it first', () => {
    const { clock, buckets, drain } = bucketsOf(10, 5)
    buckets.spend('a', 2)
    expect(buckets.owes('a')).to.equal(0)
    expect(drain('a'), 'what is left').to.equal(3)
    buckets.spend('a', 20)
    expect(buckets.owes('a')).to.be.closeTo(2_000, 1e-6)
    expect(buckets.take('a'), 'one more').to.be.closeTo(2_100, 1e-6)
    clock.advance(2_000)
    expect(buckets.owes('a')).to.be.closeTo(0, 1e-6)
    clock.advance(100)
    expect(drain('a')).to.equal(1)
    expect([buckets.owes('b'), drain('b')], 'another one').to.deep.equal([0, 5])
  })

  it('without a rate owe nothing', () => {
    const { buckets } = bucketsOf(Number.POSITIVE_INFINITY, 5)
    buckets.spend('a', 1_000_000)
    expect([buckets.owes('a'), buckets.take('a'), buckets.size]).to.deep.equal([0, 0, 0])
  })

  it('keep nothing of those that are full', () => {
    const { clock, buckets } = bucketsOf(1, 2)
    for (let n = 0; n < 5_000; n++) {
      buckets.take(`n${n}`)
      clock.advance(1)
    }
    expect(buckets.size, 'each is full a second after its token').to.be.below(2_500)
  })

  it('without a limit give always, and keep nothing', () => {
    const { buckets, drain } = bucketsOf(Number.POSITIVE_INFINITY, 1)
    expect([drain('a'), buckets.size]).to.deep.equal([10_000, 0])
  })
})
