/** When what committed records allow is purged. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { AllowedPurges } from '../../../internal/shard/housekeeping/allowed-purges.ts'
import type { HousekeepingOwner } from '../../../internal/shard/housekeeping/owner.ts'

describe('purges that committed records allow', () => {
  let now = 0
  let steps: (string | number)[]

  beforeEach(() => {
    now = 0
    steps = []
  })

  function purgesOf(syncLagMs: number, stopped = () => false): AllowedPurges {
    const log = { purgeBelow: async (seq: number) => void steps.push(seq) }
    const journal = { checkTail: async () => void steps.push('tail') }
    const owner = { clock: { monotonic: () => now }, limits: { syncLagMs }, journal, stopped }
    return new AllowedPurges(log, owner as unknown as HousekeepingOwner)
  }

  it('are done once the broker has these records on disk, and the journal was looked at', async () => {
    const purges = purgesOf(5_000)
    expect(await purges.purge()).to.equal(0)
    purges.allow(10)
    now = 2_000
    purges.allow(20)
    now = 4_999
    expect(await purges.purge()).to.equal(0)
    now = 5_000
    expect(await purges.purge()).to.equal(10)
    now = 6_999
    expect(await purges.purge()).to.equal(0)
    now = 7_000
    expect(await purges.purge()).to.equal(20)
    expect(steps).to.deep.equal(['tail', 10, 'tail', 20])
  })

  it('count from the first time that they were allowed', async () => {
    const purges = purgesOf(5_000)
    purges.allow(10)
    now = 4_000
    purges.allow(10)
    purges.allow(0)
    now = 5_000
    expect(await purges.purge()).to.equal(10)
  })

  it('wait anew when the broker was away', async () => {
    const purges = purgesOf(5_000)
    purges.allow(10)
    now = 5_000
    purges.restart()
    expect(await purges.purge()).to.equal(0)
    now = 10_000
    expect(await purges.purge()).to.equal(10)
  })

  it('are done at once where the broker has all that it acknowledges on disk, as far as they may', async () => {
    const purges = purgesOf(0)
    purges.allow(10)
    expect([await purges.purge(7), await purges.purge(7), await purges.purge()]).to.deep.equal([7, 0, 10])
    expect(steps).to.deep.equal([7, 10])
  })

  it('are not done by an owner that ended while it looked', async () => {
    const purges = purgesOf(1, () => steps.length > 0)
    purges.allow(10)
    now = 1
    expect(await purges.purge()).to.equal(0)
    expect(steps).to.deep.equal(['tail'])
  })
})
