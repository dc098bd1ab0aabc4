/** The state that archive and journal yield together, whatever of them is there. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Clock } from '../../../internal/runtime/clock.ts'
import { atOnce } from '../../../internal/runtime/in-turns.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { SnapshotArchive } from '../../../internal/shard/archive/snapshot-archive.ts'
import { endSubject, partSubject } from '../../../internal/shard/archive/snapshot-subjects.ts'
import type { Log } from '../../../internal/shard/broker.ts'
import { type JournalReading, readJournal } from '../../../internal/shard/claim/journal-reading.ts'
import { encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { type CommitName, commitName } from '../../../internal/shard/journal/commit-name.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'
import { encodeSnapshot, freezeState } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState, type FoldState } from '../../../internal/shard/journal/state.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { settled as settledTurn } from '../../ingest/support.ts'
import { BOOT, commitOf, FIRST, seal, settled } from '../journal-records.ts'
import { memoryArchive } from '../memory-archive.ts'
import { ArchiveStream } from '../simulation/archive.ts'
import { Stream } from '../simulation/streams.ts'

const NOW = 1_000
const OTHER_BOOT = BOOT.replace(/1$/, '2')

describe('a reading of archive and journal', () => {
  let journal: Stream
  let archived: ArchiveStream
  let snapshots: SnapshotArchive
  let state: FoldState
  let names: CommitName[]

  beforeEach(() => {
    journal = new Stream({ windowMs: 0, firstSeq: FIRST })
    archived = new ArchiveStream({ windowMs: 0 })
    snapshots = new SnapshotArchive({ archive: memoryArchive(archived), clock: systemClock(), writer: 'a' })
    state = emptyState()
    names = []
    add({ type: 'epoch' })
    add(seal(0, [{ seq: FIRST, index: 0 }]))
    add(settled('done', 0, FIRST + 1))
    add(seal(1, [{ seq: FIRST, index: 1 }]))
    add({ type: 'horizon', seq: FIRST + 1 })
  })

  /** Appends a commit, which the state takes. */
  function add(...records: JournalRecord[]): void {
    const commit = commitOf(records)
    const data = encodeCommit(commit, records.map(encodeRecord))
    const seq = journal.lastSeq + 1
    journal.append(NOW, data, null)
    applyCommit(state, { seq, commit })
    names.push(commitName(seq, data))
  }

  const bytesOf = (of: FoldState) => {
    const slices: Buffer[] = []
    atOnce(encodeSnapshot(freezeState(of)), (slice) => void slices.push(slice))
    return Buffer.concat(slices)
  }

  /** Of the state of now. */
  const snapshot = (name = names.at(-1)!) =>
    snapshots.write(name, encodeSnapshot(freezeState(state)), () => false)

  function read(to = journal.lastSeq, clock: Clock = systemClock()): Promise<JournalReading> {
    const log = {
      state: async () => journal.state(),
      get: async (seq: number) => journal.get(seq),
      async *range(from: number, end: number) {
        for (const message of journal.messages) if (message.seq >= from && message.seq <= end) yield message
      },
    } as unknown as Log
    return readJournal({ journal: log, archive: snapshots, clock }, to)
  }

  async function expectWhole(): Promise<JournalReading> {
    const reading = await read()
    expect(reading.fault).to.equal(null)
    expect(reading.denied).to.equal(null)
    expect(bytesOf(reading.state).equals(bytesOf(state))).to.equal(true)
    return reading
  }

  it('is the fold of the journal where there is no snapshot', async () => {
    const { snapshot: found, settled: facts } = await expectWhole()
    expect(found).to.equal(null)
    expect(facts).to.have.length(1)
  })

  it('begins with the newest whole snapshot, and takes facts from below it', async () => {
    await snapshot()
    add({ type: 'horizon', seq: FIRST + 2 })
    const { snapshot: found, settled: facts, bytesBehind } = await expectWhole()
    expect(found?.name.seq).to.equal(FIRST + 4)
    expect(facts).to.have.length(1)
    expect(bytesBehind).to.be.within(1, 200)
  })

  it('takes facts of batches whose seals are cut off', async () => {
    await snapshot()
    journal.purgeBelow(FIRST + 2)
    const { settled: facts } = await expectWhole()
    expect(facts.map(({ commit }) => commit)).to.deep.equal([names[2]])
  })

  it('needs nothing of the journal below the snapshot', async () => {
    await snapshot()
    add({ type: 'horizon', seq: FIRST + 2 })
    journal.purgeBelow(FIRST + 4)
    await expectWhole()
  })

  it('passes over a snapshot of which something is missing', async () => {
    await snapshot()
    add({ type: 'horizon', seq: FIRST + 2 })
    await snapshot()
    archived.remove(partSubject(names.at(-1)!, 0))
    const { snapshot: found } = await expectWhole()
    expect(found?.name.seq).to.equal(FIRST + 4)
  })

  it('misses commits that a purge took behind the snapshot, or with none', async () => {
    journal.purgeBelow(FIRST + 2)
    expect((await read()).fault).to.include(`from ${FIRST} to ${FIRST + 1}`)
    await snapshot()
    for (let n = 0; n < 3; n++) add({ type: 'horizon', seq: FIRST + 2 + n })
    journal.messages.splice(-2, 1)
    expect((await read()).fault).to.include(`from ${FIRST + 6} to ${FIRST + 6}`)
  })

  it('ends at the commit that was stored, and nowhere else', async () => {
    await snapshot()
    expect((await read(FIRST + 5)).fault).to.include(`ends at ${FIRST + 4}`)
  })

  it('tells of a snapshot of a commit that the journal does not reach', async () => {
    await snapshot()
    add({ type: 'horizon', seq: FIRST + 2 })
    await snapshot()
    journal.messages.pop()
    journal.lastSeq--
    const { denied, fault, snapshot: found } = await read()
    expect(denied).to.include(`${FIRST + 5}`)
    expect(fault).to.equal(null)
    expect(found?.name.seq).to.equal(FIRST + 4)
  })

  it('tells of a snapshot of another commit at the same place, also when it has no end', async () => {
    const data = encodeCommit({ ...commitOf([]), boot: OTHER_BOOT }, [])
    await snapshot(commitName(FIRST + 3, data))
    archived.remove(endSubject(commitName(FIRST + 3, data)))
    const { denied, fault } = await read()
    expect(denied).to.include(`${FIRST + 3}`)
    expect(fault).to.equal(null)
  })

  it('goes on with the snapshot before one of another commit, which it tells of: a repair has nothing else', async () => {
    await snapshot()
    add({ type: 'horizon', seq: FIRST + 2 })
    const data = encodeCommit({ ...commitOf([]), boot: OTHER_BOOT }, [])
    await snapshot(commitName(FIRST + 5, data))
    journal.purgeBelow(FIRST + 4)
    const { denied, fault, snapshot: found } = await read()
    expect(denied).to.include(`${FIRST + 5}`)
    expect([fault, found?.name.seq]).to.deep.equal([null, FIRST + 4])
  })

  it('takes turns of the event loop, whatever commits hold', async () => {
    const clock = new ManualClock()
    for (let n = 2; n < 8; n++) {
      const positions = Array.from({ length: 1_500 }, (_, index) => ({ seq: FIRST + n, index }))
      add({ type: 'discard', batch: null, positions })
    }
    const reading = read(journal.lastSeq, clock)
    let turns = 0
    for (await settledTurn(); clock.pending > 0; await settledTurn()) {
      turns++
      clock.advance(0)
    }
    expect((await reading).fault).to.equal(null)
    expect(turns).to.equal(1)
  })

  it('asks for no single commit: a server without its peers could deny one', async () => {
    await snapshot()
    const { get } = journal
    journal.get = () => {
      throw new Error('a commit was asked for')
    }
    await expectWhole()
    journal.get = get
  })

  it('misses no commit of a snapshot that was purged', async () => {
    await snapshot(names[0])
    await snapshot()
    journal.purgeBelow(FIRST + 4)
    await expectWhole()
  })
})
