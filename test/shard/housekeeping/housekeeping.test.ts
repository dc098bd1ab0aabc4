/** Steps of housekeeping together, over logs in memory. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Clock } from '../../../internal/runtime/clock.ts'
import { SnapshotArchive } from '../../../internal/shard/archive/snapshot-archive.ts'
import { Projector, type ProjectorOptions } from '../../../internal/shard/batches/projector.ts'
import type { Log } from '../../../internal/shard/broker.ts'
import {
  type FoundJournal,
  Housekeeping,
  type HousekeepingOptions,
} from '../../../internal/shard/housekeeping/housekeeping.ts'
import { HOUSEKEEPING_LIMITS } from '../../../internal/shard/housekeeping/limits.ts'
import { decodeCommit } from '../../../internal/shard/journal/codec.ts'
import { Journal } from '../../../internal/shard/journal/journal.ts'
import { encodeSnapshot, freezeState } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { settled } from '../../ingest/support.ts'
import { BOOT, uuid } from '../journal-records.ts'
import { memoryArchive } from '../memory-archive.ts'

const MAX_BYTES = 1_000_000
const CLAIM = 100
const SNAPSHOT = { seq: 80, identity: 'f0' }
/** Of the archive: what it waits for is over in the next turn of the event loop. */
const QUICK: Clock = {
  now: () => 0,
  monotonic: () => 0,
  after(_ms, task) {
    setImmediate(task)
    return () => {}
  },
}

/** A journal of which nine tenths are taken, or more; a purge leaves a third of it. */
class FullLog {
  bytes: number
  lastSeq = CLAIM
  purged = 0
  readonly types: string[] = []
  readonly #commits = new Map<number, Uint8Array>()

  constructor(share = 0.9) {
    this.bytes = share * MAX_BYTES
  }

  async state() {
    const { bytes, lastSeq } = this
    return { firstSeq: Math.max(1, this.purged), lastSeq, messages: lastSeq, bytes, maxBytes: MAX_BYTES }
  }

  async append(data: Uint8Array) {
    this.bytes += data.length
    this.types.push(...decodeCommit(data).records.map(({ type }) => type))
    this.#commits.set(++this.lastSeq, data)
    return { kind: 'stored', seq: this.lastSeq, duplicate: false }
  }

  async get(seq: number) {
    const data = this.#commits.get(seq)
    return data && { seq, at: 0, data, msgId: null }
  }

  async purgeBelow(seq: number) {
    this.purged = seq
    this.bytes = MAX_BYTES / 3
  }
}

/** An owner whose claim Postgres does not know yet, and found the snapshot of the owner before. */
async function ownerOf(
  log: FullLog,
  parts: Partial<Record<'replay' | 'packs' | 'inboxLog', object>> = {},
  syncLagMs = 0,
) {
  const clock = new ManualClock()
  const stored = log as unknown as Log
  const state = emptyState()
  const journal = new Journal({
    shard: 0,
    log: stored,
    clock,
    boot: BOOT,
    writer: 'w',
    epoch: CLAIM,
    state: () => state,
    highWater: () => null,
    claimAgain: async () => Number.NaN,
    onCommit: () => {},
    onRefused: () => {},
    onLost: (error) => {
      throw error
    },
  })
  const counting = {
    projection: { position: async () => 0, project: async () => {} },
    fence: { shard: 0, epoch: CLAIM },
    clock,
    limits: { factsAtOnce: 10 } as ProjectorOptions['limits'],
    raised: new Promise<void>(() => {}),
    onFatal: () => {},
    onProblem: () => {},
  }
  const projector = new Projector(counting, [], journal.last)
  const limits = { ...HOUSEKEEPING_LIMITS, syncLagMs }
  const problems: string[] = []
  const none = {
    replay: { cursor: 0, highWater: null, replaying: false },
    intake: { bytesRead: 0 },
    packs: { news: () => null },
    live: { inboxBytes: 0, keptBytes: 0, lowestInboxSeq: undefined, inInbox: () => [], kept: () => [] },
    duplicates: { lowestDropping: undefined },
    payloads: {},
    onProblem: (_: string, error: Error) => problems.push(error.message),
  }
  const logs = { inboxLog: stored, journalLog: stored }
  const archive = new SnapshotArchive({ archive: memoryArchive(), clock: QUICK, writer: 'a' })
  const bytes = await archive.write(SNAPSHOT, encodeSnapshot(freezeState(state)), () => false)
  const found: FoundJournal = { snapshot: { name: SNAPSHOT, bytes, claim: 0 }, bytesBehind: 0 }
  const options = { ...none, ...logs, ...parts, archive, clock, limits, journal, state, projector }
  await journal.look()
  const housekeeping = new Housekeeping(options as unknown as HousekeepingOptions, found)
  const stop = () => {
    housekeeping.stop()
    projector.stop()
  }
  return { clock, archive, journal, problems, housekeeping, stop }
}

async function pass(clock: ManualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await settled()
    clock.advance(1_000)
  }
  await settled()
}

/** Below which sequence the owner cut its journal within a minute. */
async function cutBelow(log: FullLog): Promise<number> {
  const { clock, stop } = await ownerOf(log)
  await pass(clock, 60)
  stop()
  return log.purged
}

describe('a full journal while Postgres does not know of the claim', () => {
  it('is cut behind the snapshot of the owner before', async () => {
    expect(await cutBelow(new FullLog())).to.be.at.least(SNAPSHOT.seq)
  })
})

describe('a journal with room while Postgres does not know of the claim', () => {
  it('keeps all that the counters may miss', async () => {
    expect(await cutBelow(new FullLog(0.3))).to.equal(0)
  })
})

describe('a journal of which the newest snapshot is gone', () => {
  it('gets another one', async () => {
    const { clock, archive, journal, stop } = await ownerOf(new FullLog(0.3))
    await journal.commit({ type: 'horizon', seq: 1 })
    await archive.removeBefore({ seq: SNAPSHOT.seq + 1, identity: '' })
    await pass(clock, 60)
    stop()
    expect((await archive.list()).map(({ hasEnd }) => hasEnd)).to.deep.equal([true])
  })
})

describe('a log of a broker that was away', () => {
  const LAG_MS = 45_000

  /** After how many seconds one of the two is purged. `share`: what of the journal is taken. */
  async function purgedAfter(which: 'inbox' | 'journal', share: number, awayAt = 0): Promise<number> {
    const logs = { inbox: new FullLog(), journal: new FullLog(share) }
    const replay = { cursor: 50, highWater: null, replaying: false }
    const parts = { replay, inboxLog: logs.inbox }
    const { clock, housekeeping, stop } = await ownerOf(logs.journal, parts, LAG_MS)
    let second = 0
    while (logs[which].purged === 0 && second < 300) {
      await pass(clock, 1)
      if (++second === awayAt) housekeeping.reconnected()
    }
    stop()
    return second
  }

  for (const [which, share] of [
    ['inbox', 0.3],
    ['journal', 0.9],
  ] as const) {
    it(`is purged once it has waited for the disk again: the ${which}`, async () => {
      const back = 70
      expect(await purgedAfter(which, share)).to.be.within(back, back + LAG_MS / 1_000 - 1)
      expect(await purgedAfter(which, share, back)).to.be.at.least(back + LAG_MS / 1_000)
    })
  }
})

describe('a full journal with drops that wait for room', () => {
  it('counts no pack as seen, and passes none, before they are committed', async () => {
    const log = new FullLog(0.97)
    const replay = { cursor: 50, highWater: null, replaying: false }
    const seen = { type: 'seen', upTo: 49, writers: [{ writer: uuid(1), number: 1 }] }
    const { clock, journal, stop } = await ownerOf(log, { replay, packs: { news: () => seen } })
    journal.write({ type: 'drop', position: { seq: 9, index: 0 }, itemId: uuid(2), originalItemId: uuid(2) })
    expect(journal.holdsBack).to.equal(true)
    await pass(clock, 3)
    expect(log.types).not.to.include.members(['seen', 'horizon'])
    log.bytes = 0
    await journal.look()
    await pass(clock, 3)
    expect(log.types.filter((type) => ['drop', 'seen', 'horizon'].includes(type))).to.deep.equal([
      'drop',
      'seen',
      'horizon',
    ])
    stop()
  })
})

describe('a step of housekeeping that fails again and again', () => {
  it('is told every 30 s, and at once where it fails for another reason', async () => {
    let reason = 'no answer'
    const news = () => {
      throw new Error(reason)
    }
    const replay = { cursor: 50, highWater: null, replaying: false }
    const { clock, problems, stop } = await ownerOf(new FullLog(0.3), { replay, packs: { news } })
    await pass(clock, 40)
    expect(problems).to.deep.equal(['no answer', 'no answer'])
    reason = 'no leader'
    await pass(clock, 2)
    expect(problems.slice(2)).to.deep.equal(['no leader'])
    stop()
  })
})
