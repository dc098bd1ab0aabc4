/**
 * A power cut takes what the broker has acknowledged and not synced, and no purge comes back (docs/architecture/protocol.md,
 * "Housekeeping"). So a log keeps its beginning until what replaces it is on disk.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Broker } from '../../internal/shard/broker.ts'
import type { HousekeepingLimits } from '../../internal/shard/housekeeping/limits.ts'
import { eventually } from '../support/eventually.ts'
import { losingEnds } from './hindered-brokers.ts'
import { ownersOfEachTest } from './owners.ts'
import { numbersOf, type Owner } from './real-owner.ts'
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

  /** Until a keep is committed and a snapshot complete, and a round more, which could purge behind them. */
  async function untilReplaced(housekeep: () => Promise<void>): Promise<void> {
    await eventually(async () => {
      await housekeep()
      const types = (await here.records()).map(({ record }) => record.type)
      expect(types).to.include('keep')
      expect(await here.snapshots()).not.to.deep.equal([])
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
      expect(owner.ended?.message).to.include('the broker lost messages')
    })
    expect(await firsts()).to.deep.equal(before)
  })

  describe('with a journal that gets full', () => {
    const FULL = { everyMs: 20, purgeLagMs: 50, snapshotBytes: 20_000, syncLagMs: 3_000 }
    /** More than the journal has room for, faster than what is written in 3 s could be removed. */
    const COUNT = 10_000
    const MAX_BYTES = 300_000
    /** From there on it takes no records. */
    const ROOM = MAX_BYTES * 0.8
    let answer: () => void
    let open: Promise<void>

    beforeEach(async () => {
      const { streams } = await here.connection.nats.jetstreamManager()
      await streams.update('JOURNAL_0', { max_bytes: MAX_BYTES })
      open = new Promise((resolve) => {
        answer = resolve
      })
    })

    const bytes = async () => (await here.broker.journal(0).state()).bytes

    function own(
      housekeeping: Partial<HousekeepingLimits> = {},
      broker: Broker = here.broker,
    ): Promise<Owner> {
      const destination = () => open.then(() => 200)
      return here.own({
        housekeeping: { ...FULL, ...housekeeping },
        attemptsPerBuffer: 10_000,
        destination,
        broker,
      })
    }

    async function fill(): Promise<void> {
      for (let n = 0; n < COUNT; n += 100)
        await here.ingest(
          Array.from({ length: 100 }, (_, i) => ({ key: `group ${Math.floor((n + i) / 5)}`, n: n + i })),
        )
    }

    async function untilNothingMoves(): Promise<void> {
      for (let before = -1; before !== (await bytes()); before = await bytes()) await delay(4_000)
    }

    /** Its bytes and its records, as `seal 60, done 1, …`: what a journal that stands still is full of. */
    async function inJournal(): Promise<string> {
      const runs: [type: string, count: number][] = []
      for (const { record } of await here.records()) {
        const last = runs.at(-1)
        if (last?.[0] === record.type) last[1]++
        else runs.push([record.type, 1])
      }
      return `${await bytes()} bytes: ${runs.map((run) => run.join(' ')).join(', ')}`
    }

    async function untilSentAndCut(...owners: Owner[]): Promise<void> {
      const sent = () => new Set(owners.flatMap((owner) => owner.sent).flatMap(({ body }) => numbersOf(body)))
      await eventually(() => expect(sent().size).to.equal(COUNT), { timeoutMs: 60_000 }).catch(
        async (error: unknown) => {
          const told = owners.map(({ problems }) => problems)
          throw new Error(`${JSON.stringify([await inJournal(), told])}`, { cause: error })
        },
      )
      // It may rest below what makes it full: the next snapshot is due by the size of the last one.
      await eventually(async () => expect(await bytes()).to.be.below(ROOM), { timeoutMs: 30_000 })
      expect(owners.at(-1)!.ended).to.equal(null)
    }

    it('go on by themselves', async () => {
      const owner = await own()
      answer()
      await fill()
      await untilSentAndCut(owner)
    })

    it('go on when the destination answers at last', async () => {
      const owner = await own()
      await fill()
      await untilNothingMoves()
      answer()
      await untilSentAndCut(owner)
    })

    it('go on under another owner', async () => {
      const first = await own()
      await fill()
      await untilNothingMoves()
      await first.shard.abandon()
      answer()
      await untilSentAndCut(first, await own())
    })

    it('go on when their owners end within a snapshot, again and again', async () => {
      const first = await own({}, losingEnds(here.broker))
      await fill()
      await untilNothingMoves()
      await first.shard.abandon()
      const second = await own({}, losingEnds(here.broker))
      await untilNothingMoves()
      await second.shard.abandon()
      answer()
      await untilSentAndCut(first, second, await own())
    })

    it('go on beside items that are kept, and keep them', async () => {
      const owner = await own({ keepBytes: 10_000, keepRatio: 0.1 })
      const held = Array.from({ length: 20 }, (_, n) => n)
      for (const n of held) await here.ingest([{ key: `held ${n}`, n: COUNT + n, pad: 5_000 }])
      answer()
      await fill()
      const kept = async () =>
        (await here.records()).flatMap(({ record }) => (record.type === 'keep' ? record.items : []))
      expect(await kept()).to.have.length.above(10)
      await untilSentAndCut(owner)
      for (const n of held)
        await here.ingest([1, 2, 3, 4].map((i) => ({ key: `held ${n}`, n: COUNT + i * 100 + n })))
      const bodies = () => owner.sent.filter(({ body }) => numbersOf(body)[0]! >= COUNT)
      await eventually(() => expect(bodies()).to.have.lengthOf(held.length))
    })
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
