import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  claimed,
  type LeaseSpec,
  microTime,
  Observation,
  released,
} from '../../../operator/kubernetes/lease.ts'

const T0 = Date.UTC(2030, 0, 1)
const theirs: LeaseSpec = claimed(undefined, 'them', 15_000, T0)

describe('a lease', () => {
  it('has times with six fractional digits', () => {
    expect(microTime(T0 + 7)).to.equal('2030-01-01T00:00:00.007000Z')
  })

  it('is held until its record has not changed for its duration, by the time that passes here', () => {
    const seen = new Observation()
    seen.see(theirs, 1_000)
    expect(seen.isHeldAgainst('us', theirs, 1_000 + 14_999)).to.equal(true)
    expect(seen.isHeldAgainst('us', theirs, 1_000 + 15_000)).to.equal(false)
  })

  it('counts from the first sight, however old or new its times say that it is', () => {
    for (const skew of [-86_400_000, 86_400_000]) {
      const seen = new Observation()
      const skewed = claimed(undefined, 'them', 15_000, T0 + skew)
      seen.see(skewed, 1_000)
      seen.see(skewed, 9_000)
      expect(seen.isHeldAgainst('us', skewed, 15_999)).to.equal(true)
      expect(seen.isHeldAgainst('us', skewed, 16_000)).to.equal(false)
    }
  })

  it('is held for longer when it is renewed', () => {
    const seen = new Observation()
    const renewed = claimed(theirs, 'them', 15_000, T0 + 2_000)
    seen.see(theirs, 0)
    seen.see(renewed, 14_000)
    expect(seen.isHeldAgainst('us', renewed, 28_999)).to.equal(true)
  })

  it('is free for its holder, and for all when it was released', () => {
    const seen = new Observation()
    const free = released(theirs, T0 + 5_000)
    seen.see(theirs, 0)
    expect(seen.isHeldAgainst('them', theirs, 1)).to.equal(false)
    seen.see(free, 10)
    expect(seen.isHeldAgainst('us', free, 10)).to.equal(false)
  })

  it('keeps its time of acquisition and its count of transitions while one holder renews it', () => {
    const renewed = claimed(theirs, 'them', 15_000, T0 + 2_000)
    expect(renewed).to.deep.equal({ ...theirs, renewTime: microTime(T0 + 2_000) })
    const taken = claimed(released(renewed, T0 + 3_000), 'us', 15_000, T0 + 4_000)
    expect(taken).to.deep.equal({
      holderIdentity: 'us',
      leaseDurationSeconds: 15,
      acquireTime: microTime(T0 + 4_000),
      renewTime: microTime(T0 + 4_000),
      leaseTransitions: 1,
    })
  })
})
