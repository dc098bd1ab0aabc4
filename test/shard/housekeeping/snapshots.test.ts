/** When a snapshot is written, and that it holds the state of its commit whatever is committed meanwhile. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { ArchiveFullError, SnapshotArchive } from '../../../internal/shard/archive/snapshot-archive.ts'
import type { Log } from '../../../internal/shard/broker.ts'
import type { KnownSnapshot } from '../../../internal/shard/claim/journal-reading.ts'
import { Snapshots, type SnapshotsOptions } from '../../../internal/shard/housekeeping/snapshots.ts'
import { Journal } from '../../../internal/shard/journal/journal.ts'
import { writeSnapshot } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { BOOT, FIRST, seal } from '../journal-records.ts'
import { memoryArchive } from '../memory-archive.ts'

const POSITIONS = 50_000

/** A journal that may be cut behind this snapshot, and each one that follows it. */
function cutBehind(snapshot: KnownSnapshot | null) {
  const cut: SnapshotsOptions['cut'] & { snapshot: typeof snapshot } = {
    snapshot,
    isWaiting: false,
    behind: (next) => {
      cut.snapshot = next
    },
  }
  return cut
}

/** An owner that seals a batch in each turn of the event loop. */
async function snapshotAmongSeals() {
  const state = emptyState()
  for (let n = 0; n < POSITIONS; n++) state.finished.add(FIRST + 2 * n, 0)
  let commits = 0
  const append = async () => ({ kind: 'stored', seq: FIRST + ++commits, duplicate: false })
  const clock = systemClock()
  const journal = new Journal({
    shard: 0,
    log: { append } as unknown as Log,
    clock,
    boot: BOOT,
    writer: 'w',
    epoch: FIRST,
    state: () => state,
    highWater: () => null,
    claimAgain: async () => Number.NaN,
    onCommit: () => {},
    onRefused: () => {},
    onLost: (error) => {
      throw error
    },
  })
  const archive = new SnapshotArchive({ archive: memoryArchive(), clock, writer: 'a' })
  const cut = cutBehind(null)
  const snapshots = new Snapshots(
    {
      clock,
      limits: { snapshotBytes: 1 },
      archive,
      journal,
      state,
      stopped: () => false,
      onProblem: (_: string, error: unknown) => {
        throw error
      },
      cut,
    } as unknown as SnapshotsOptions,
    0,
  )
  await journal.commit({ type: 'horizon', seq: FIRST })
  const [name, then] = [journal.last, writeSnapshot(state)]
  let running = true
  let sealed = 0
  const sealNext = () => {
    if (!running) return
    journal.write(seal(sealed % 250, [{ seq: FIRST + 2 * sealed++ + 1, index: 0 }]))
    setImmediate(sealNext)
  }
  setImmediate(sealNext)
  await snapshots.step()
  running = false
  return { name, then, taken: cut.snapshot, archived: await archive.read(name), sealed: state.batches.size }
}

/** A journal of which only its bytes matter, and an archive that notes what it is given. */
function owner() {
  const clock = new ManualClock()
  const journal = { last: { seq: FIRST, identity: 'f0' }, bytesWritten: 0, isFull: false }
  const problems: string[] = []
  let refuses = false
  const cut = cutBehind({ name: { seq: 1, identity: 'f0' }, bytes: 2_000 })
  const options = {
    clock,
    limits: { snapshotBytes: 1_000 },
    archive: {
      write: async () => {
        if (refuses) throw new ArchiveFullError('full')
        return 5_000
      },
    },
    journal,
    state: emptyState(),
    stopped: () => false,
    onProblem: (what: string) => problems.push(what),
    cut,
  } as unknown as SnapshotsOptions
  const snapshots = new Snapshots(options, 500)
  return {
    clock,
    journal,
    problems,
    snapshots,
    isTaken: async () => {
      const before = cut.snapshot
      await snapshots.step()
      return cut.snapshot !== before
    },
    refuse: (now: boolean) => {
      refuses = now
    },
  }
}

describe('a snapshot', () => {
  it('holds the state of the commit that it names, and seals pass while it is written', async () => {
    const { name, then, taken, archived, sealed } = await snapshotAmongSeals()
    expect(taken).to.deep.equal({ name, bytes: then.length })
    expect(archived?.equals(then)).to.equal(true)
    expect(sealed).to.be.above(10)
  })

  it("is due when the journal grew by the size of the last one, others' commits included, and by 1 MB", async () => {
    const { journal, isTaken } = owner()
    journal.bytesWritten = 1_499
    expect(await isTaken()).to.equal(false)
    journal.bytesWritten = 1_500
    expect(await isTaken()).to.equal(true)
    journal.bytesWritten = 6_499
    expect(await isTaken()).to.equal(false)
    journal.bytesWritten = 6_500
    expect(await isTaken()).to.equal(true)
  })

  it('is due in a full journal after any growth', async () => {
    const { journal, isTaken } = owner()
    journal.isFull = true
    expect(await isTaken()).to.equal(true)
    expect(await isTaken()).to.equal(false)
    journal.bytesWritten = 1
    expect(await isTaken()).to.equal(true)
  })

  it('is due when the last one is not there any more', async () => {
    const { snapshots, isTaken } = owner()
    snapshots.missed()
    expect(await isTaken()).to.equal(true)
  })

  it('is a problem, and tried again after 30 s, where the archive has no room', async () => {
    const { clock, journal, problems, isTaken, refuse } = owner()
    journal.bytesWritten = 2_000
    refuse(true)
    for (let second = 0; second < 29; second++) {
      expect(await isTaken()).to.equal(false)
      clock.advance(1_000)
    }
    expect(problems).to.deep.equal(['the archive does not take a snapshot'])
    refuse(false)
    clock.advance(1_000)
    expect(await isTaken()).to.equal(true)
  })

  it('names no commit of another owner: that one it has not seen answered', async () => {
    const { journal, isTaken } = owner()
    Object.assign(journal, { last: { seq: FIRST, identity: null }, isFull: true })
    expect(await isTaken()).to.equal(false)
  })
})
