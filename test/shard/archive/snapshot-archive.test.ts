/** Snapshots in an archive that is held in memory: what counts as one, what is removed, and which answers count. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Clock } from '../../../internal/runtime/clock.ts'
import {
  ArchiveFullError,
  PART_BYTES,
  SnapshotArchive,
} from '../../../internal/shard/archive/snapshot-archive.ts'
import { endSubject, partSubject } from '../../../internal/shard/archive/snapshot-subjects.ts'
import type { Archive } from '../../../internal/shard/broker.ts'
import type { CommitName } from '../../../internal/shard/journal/commit-name.ts'
import { memoryArchive } from '../memory-archive.ts'
import { ArchiveStream } from '../simulation/archive.ts'

/** Time passes at once: only the turns count. */
class QuickClock implements Clock {
  turns = 0
  now = () => 1_000
  monotonic = () => 1_000
  after(_ms: number, task: () => void): () => void {
    this.turns++
    setImmediate(task)
    return () => {}
  }
}

const nameAt = (seq: number): CommitName => ({ seq, identity: seq.toString(16).padStart(32, '0') })
const never = () => false
/** Two parts and a bit. */
const SLICES = Array.from({ length: 9 }, (_, n) => Buffer.alloc(PART_BYTES / 4, n))

describe('snapshots in an archive', () => {
  let stream: ArchiveStream
  let clock: QuickClock
  let snapshots: SnapshotArchive

  beforeEach(() => {
    stream = new ArchiveStream({ windowMs: 120_000 })
    clock = new QuickClock()
    snapshots = writerOn(stream, 'a')
  })

  function writerOn(target: ArchiveStream, writer: string, changed: Partial<Archive> = {}): SnapshotArchive {
    const archive = { ...memoryArchive(target), ...changed }
    return new SnapshotArchive({ archive, clock, writer })
  }

  const names = async () => (await snapshots.list()).map(({ name, hasEnd }) => [name.seq, hasEnd])

  it('reads back what it wrote, in parts, with a turn of the event loop after each slice', async () => {
    expect(await snapshots.write(nameAt(7), SLICES, never)).to.equal(9 * (PART_BYTES / 4))
    expect(stream.list('snapshot.>').subjects).to.have.length(4)
    expect(clock.turns).to.equal(SLICES.length)
    expect((await snapshots.read(nameAt(7)))?.equals(Buffer.concat(SLICES))).to.equal(true)
  })

  it('lists the newest first, also those without an end', async () => {
    await snapshots.write(nameAt(7), SLICES, never)
    await snapshots.write(nameAt(9), SLICES, never)
    stream.append(1_000, Buffer.from('part'), 'x', partSubject(nameAt(8), 0))
    expect(await names()).to.deep.equal([
      [9, true],
      [8, false],
      [7, true],
    ])
  })

  it('takes none for whole that misses its end, or a part, or has another part', async () => {
    await snapshots.write(nameAt(7), SLICES, never)
    stream.append(1_000, Buffer.from('another'), 'x', partSubject(nameAt(7), 1))
    expect(await snapshots.read(nameAt(7)), 'another part').to.equal(undefined)
    stream.remove(partSubject(nameAt(7), 1))
    expect(await snapshots.read(nameAt(7)), 'no part').to.equal(undefined)
    await snapshots.write(nameAt(8), SLICES, never)
    stream.remove(endSubject(nameAt(8)))
    expect(await snapshots.read(nameAt(8)), 'no end').to.equal(undefined)
  })

  it('removes what has no end before it writes, and leaves whole ones', async () => {
    await snapshots.write(nameAt(7), SLICES, never)
    stream.append(1_000, Buffer.from('part'), 'x', partSubject(nameAt(8), 0))
    await snapshots.write(nameAt(9), SLICES, never)
    expect(await names()).to.deep.equal([
      [9, true],
      [7, true],
    ])
  })

  it('writes one under a name of which a part is there without removing it: the removal may come late', async () => {
    stream.append(1_000, Buffer.from('part'), 'x', partSubject(nameAt(9), 0))
    const removed: string[] = []
    const careful = writerOn(stream, 'b', {
      remove: async (filter) => {
        removed.push(filter)
      },
    })
    await careful.write(nameAt(9), SLICES, never)
    expect(removed).to.deep.equal([])
    expect(await careful.read(nameAt(9))).not.to.equal(undefined)
  })

  it('removes what stands before one, with the probes', async () => {
    for (const seq of [7, 8, 9]) await snapshots.write(nameAt(seq), SLICES, never)
    await snapshots.removeBefore(nameAt(8))
    expect(stream.list('probe').subjects).to.deep.equal([])
    expect(await names()).to.deep.equal([
      [9, true],
      [8, true],
    ])
  })

  it('believes no list that is older than its probe', async () => {
    const before = stream.view()
    await snapshots.write(nameAt(7), SLICES, never)
    let asked = 0
    const behind = writerOn(stream, 'b', {
      list: async (filter) => (asked++ < 2 ? before : stream).list(filter),
    })
    expect((await behind.list()).map(({ name }) => name.seq)).to.deep.equal([7])
    expect(asked).to.equal(3)
  })

  it('sends a probe again that a power cut took', async () => {
    await snapshots.write(nameAt(7), SLICES, never)
    let after = stream.view()
    let [cut, asked] = [false, 0]
    const behind = writerOn(stream, 'b', {
      append: async (data, { subject, msgId }) => {
        if (cut) return after.append(1_000, data, msgId, subject)
        cut = true
        const answer = stream.append(1_000, data, msgId, subject)
        return answer
      },
      list: async (filter) => {
        if (++asked > 9) throw new Error('no other probe came')
        return after.list(filter)
      },
    })
    after = stream.view()
    expect(await behind.list()).to.have.length(1)
  })

  it('refuses what takes more than its share, and what does not fit', async () => {
    const small = new ArchiveStream({ windowMs: 120_000, maxBytes: 5 * PART_BYTES })
    const most = writerOn(small, 'a')
    const refused = await most.write(nameAt(7), SLICES, never).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(ArchiveFullError)
    small.append(1_000, Buffer.alloc(4 * PART_BYTES), 'x', 'snapshot.1.ff.end')
    const full = await most.write(nameAt(8), SLICES.slice(0, 5), never).catch((error: unknown) => error)
    expect(full).to.be.instanceOf(ArchiveFullError)
  })

  it('leaves room for probes, without which no claim lists it', async () => {
    const small = new ArchiveStream({ windowMs: 120_000, maxBytes: 10 * PART_BYTES })
    small.append(1_000, Buffer.alloc(8 * PART_BYTES), 'x', 'snapshot.1.ff.0')
    small.append(1_000, Buffer.alloc(PART_BYTES / 2), 'y', 'snapshot.2.ff.end')
    const refused = await writerOn(small, 'a', { remove: async () => {} })
      .write(nameAt(7), SLICES.slice(0, 5), never)
      .catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(ArchiveFullError)
    expect(small.state().bytes).to.be.at.most(9.5 * PART_BYTES)
  })

  it('ends when it is stopped', async () => {
    const stopped = await snapshots.write(nameAt(7), SLICES, () => true).catch((error: unknown) => error)
    expect(String(stopped)).to.include('stopped')
    expect(await names()).to.deep.equal([])
  })
})
