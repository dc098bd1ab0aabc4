/**
 * A power cut takes what the broker has acknowledged and not synced, and no purge comes back (docs/architecture/protocol.md,
 * "Housekeeping"). So a log keeps its beginning until what replaces it is on disk.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { ownersOfEachTest } from './owners.ts'
import { numbersOf } from './real-owner.ts'
import { loseAbove } from './repair/loss.ts'

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

  it('keep their beginnings when a power cut takes what was waited for', async () => {
    const owner = await here.own({ housekeeping: { ...BY_HAND, syncLagMs: 500 } })
    await load(0)
    await here.done(5)
    const { lastSeq } = await here.broker.journal(0).state()
    await untilReplaced(() => owner.shard.housekeep())
    await loseAbove(here.connection, here.broker.journal(0), { stream: 'JOURNAL_0', to: lastSeq })
    const before = await firsts()
    await eventually(async () => {
      await owner.shard.housekeep()
      expect(owner.problems.join()).to.include('the broker lost messages')
    })
    expect(await firsts()).to.deep.equal(before)
  })

  it('are cut also while the journal is full, and the shard goes on by itself', async () => {
    const { streams } = await here.connection.nats.jetstreamManager()
    await streams.update('JOURNAL_0', { max_bytes: 300_000 })
    const quick = { everyMs: 20, purgeLagMs: 50, snapshotBytes: 20_000, syncLagMs: 3_000 }
    const owner = await here.own({ housekeeping: quick })
    const bytes = async () => (await here.broker.journal(0).state()).bytes
    let n = 0
    // Faster than what is written in 3 s could be removed.
    const ingest = () =>
      here.ingest(Array.from({ length: 100 }, () => ({ key: `group ${Math.floor(n / 5)}`, n: n++ })))
    while ((await bytes()) < 290_000 && n < 20_000) await ingest()
    expect(await bytes(), 'it is full').to.be.at.least(290_000)
    for (let more = 0; more < 10; more++) await ingest()
    const sent = () => new Set(owner.sent.flatMap(({ body }) => numbersOf(body)))
    await eventually(() => expect(sent().size).to.equal(n), { timeoutMs: 60_000 })
    await eventually(async () => expect(await bytes()).to.be.below(250_000), { timeoutMs: 30_000 })
    expect(owner.ended).to.equal(null)
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
