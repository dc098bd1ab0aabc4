import { expect } from 'chai'
import { describe, it } from 'mocha'
import { AllowedPurges } from '../../internal/shard/housekeeping/allowed-purges.ts'

describe('purges that committed records allow', () => {
  let now = 0
  const clock = { monotonic: () => now }

  it('are due once the broker has these records on disk', () => {
    now = 1_000
    const purges = new AllowedPurges(clock, 5_000)
    expect(purges.due()).to.equal(0)
    purges.allow(10)
    now = 3_000
    purges.allow(20)
    now = 5_999
    expect(purges.due()).to.equal(0)
    now = 6_000
    expect(purges.due()).to.equal(10)
    now = 7_999
    expect(purges.due()).to.equal(10)
    now = 8_000
    expect(purges.due()).to.equal(20)
  })

  it('count from the first time that they were allowed', () => {
    now = 0
    const purges = new AllowedPurges(clock, 5_000)
    purges.allow(10)
    now = 4_000
    purges.allow(10)
    purges.allow(0)
    now = 5_000
    expect(purges.due()).to.equal(10)
  })

  it('are due at once where the broker has all that it acknowledges on disk', () => {
    const purges = new AllowedPurges(clock, 0)
    purges.allow(10)
    expect(purges.due()).to.equal(10)
  })
})
