/**
 * A power cut takes what the broker has acknowledged and not synced, and no purge comes back (docs/architecture/protocol.md,
 * "Housekeeping"). So a log keeps its beginning until what replaces it is on disk.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { ownersOfEachTest } from './owners.ts'

/** Only when a test asks for it. */
const BY_HAND = { everyMs: 600_000, purgeLagMs: 0, keepBytes: 10_000, keepRatio: 1, snapshotBytes: 1_000 }
/** A group goes out with its fifth item, never by time. */
const BY_FIVE = { maxItems: 5, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }

describe('logs of a broker that syncs at an interval', function () {
  this.timeout(120_000)
  const here = ownersOfEachTest({ batch: BY_FIVE })

  async function load(from: number): Promise<void> {
    for (let round = 0; round < 5; round++) {
      const n = from + round * 10
      await here.ingest([0, 1, 2, 3, 4].map((i) => ({ key: 'busy', n: n + i, pad: 1_000 })))
      if (round < 2) await here.ingest([{ key: 'held', n: n + 9, pad: 100 }])
    }
  }

  const firsts = async () => ({
    inbox: (await here.broker.inbox(0).state()).firstSeq,
    journal: (await here.broker.journal(0).state()).firstSeq,
  })

  /** Until a keep and a snapshot are committed, and a round more, which could purge behind them. */
  async function untilReplaced(housekeep: () => Promise<void>): Promise<void> {
    await eventually(async () => {
      await housekeep()
      const types = (await here.records()).map(({ record }) => record.type)
      expect(types).to.include.members(['keep', 'snapshot-end'])
    })
    await housekeep()
  }

  it('keep their beginnings until what replaces them is on disk', async () => {
    const owner = await here.own({ housekeeping: { ...BY_HAND, syncLagMs: 600_000 } })
    const before = await firsts()
    await load(0)
    await here.done(5)
    await untilReplaced(() => owner.shard.housekeep())
    expect(await firsts()).to.deep.equal(before)
  })

  it('are cut once it is', async () => {
    const owner = await here.own({ housekeeping: { ...BY_HAND, syncLagMs: 300 } })
    const before = await firsts()
    await load(0)
    await here.done(5)
    await untilReplaced(() => owner.shard.housekeep())
    await eventually(async () => {
      await owner.shard.housekeep()
      const { inbox, journal } = await firsts()
      expect([inbox > before.inbox, journal > before.journal]).to.deep.equal([true, true])
    })
  })
})
