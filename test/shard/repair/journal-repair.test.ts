/** In which order a journal is written anew, and from which sequence on (docs/architecture/repair.md, "The journal"), in memory. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Clock } from '../../../internal/runtime/clock.ts'
import { endSubject, partSubject } from '../../../internal/shard/archive/snapshot-subjects.ts'
import type { Archive } from '../../../internal/shard/broker.ts'
import { encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { type CommitName, NO_COMMIT } from '../../../internal/shard/journal/commit-name.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'
import { DisturbedRepairError, repairJournal } from '../../../internal/shard/repair/journal-repair.ts'
import type { JournalCopies, RepairOptions } from '../../../internal/shard/repair/ports.ts'
import { BOOT, commitOf, FIRST, seal } from '../journal-records.ts'
import { memoryArchive } from '../memory-archive.ts'
import { memoryLog } from '../memory-log.ts'
import { ArchiveStream } from '../simulation/archive.ts'
import { Stream } from '../simulation/streams.ts'

const LAG_MS = 45_000
/** Of the repairing node, ms: its clock is behind. */
const NOW_MS = 1
const NAMED: CommitName = { seq: FIRST + 1_000, identity: 'f0' }

describe('the repair of a journal', () => {
  let journal: Stream
  let archived: ArchiveStream
  let copy: readonly Uint8Array[] | undefined
  let steps: string[]
  /** During the waits for the disk. */
  let during: (wait: number) => void

  beforeEach(() => {
    journal = new Stream({ windowMs: 0, firstSeq: FIRST })
    archived = new ArchiveStream({ windowMs: 0 })
    copy = undefined
    steps = []
    during = () => {}
    add({ type: 'epoch' })
    add(seal(0, [{ seq: FIRST, index: 0 }]))
  })

  function add(...records: JournalRecord[]): void {
    journal.append(NOW_MS, encodeCommit(commitOf(records), records.map(encodeRecord)), null)
  }

  const clock: Clock = {
    now: () => NOW_MS,
    monotonic: () => NOW_MS,
    after(ms, task) {
      if (ms === LAG_MS) during(steps.push('wait') && steps.filter((step) => step === 'wait').length)
      setImmediate(task)
      return () => {}
    },
  }

  function repair(): Promise<void> {
    const memory = memoryArchive(archived)
    const archive: Archive = {
      ...memory,
      append: (data, message) => {
        if (message.subject.endsWith('.end')) steps.push('snapshot')
        return memory.append(data, message)
      },
    }
    const known = { claim: NO_COMMIT, counted: NO_COMMIT }
    const copies: JournalCopies = {
      async load() {
        const messages = copy
        if (!messages) return undefined
        async function* read(from: number, to: number) {
          yield* messages!.slice(from, to)
        }
        return { length: messages.length, read }
      },
      save: async (_, messages) => {
        steps.push('save')
        copy = await Array.fromAsync(messages)
      },
      remove: async () => {
        steps.push('remove')
        copy = undefined
      },
      emptyJournal: async (_, seq) => {
        steps.push('empty')
        journal = new Stream({ windowMs: 0, firstSeq: seq })
      },
    }
    const options = {
      broker: { journal: () => memoryLog(() => journal), archive: () => archive },
      shard: 0,
      copies,
      clock,
      syncLagMs: LAG_MS,
      onWhole: () => steps.push('whole'),
      boot: BOOT,
    } as unknown as RepairOptions
    const found = { known, fault: 'lost', truncatedWithoutSnapshot: false, copied: false }
    return repairJournal(options, { shard: 0, journal: found, inbox: null })
  }

  it('removes what it replaces only once the replacement is on disk', async () => {
    await repair()
    expect(steps).to.deep.equal(['save', 'snapshot', 'wait', 'empty', 'whole', 'wait', 'remove'])
    expect(journal.messages).to.have.length(2)
  })

  it('empties nothing when the copy, or the snapshot, is gone once it has waited for the disk', async () => {
    for (const lose of [
      () => {
        copy = undefined
      },
      () => archived.remove('snapshot.>'),
    ]) {
      during = lose
      expect(await repair().catch((error: unknown) => error)).to.be.instanceOf(DisturbedRepairError)
      expect(steps).to.not.include('empty')
    }
  })

  it('keeps the copy when a power cut takes the new journal', async () => {
    during = (wait) => {
      if (wait === 2) journal = new Stream({ windowMs: 0, firstSeq: journal.state().firstSeq })
    }
    expect(await repair().catch((error: unknown) => error)).to.be.instanceOf(DisturbedRepairError)
    expect(copy).not.to.equal(undefined)
  })

  it('begins above all that the archive names, also where its clock is behind', async () => {
    archived.append(NOW_MS, Buffer.from('part'), 'x', partSubject(NAMED, 0))
    await repair()
    expect(journal.state().firstSeq).to.equal(NAMED.seq + 1)
    expect(archived.lastOf(endSubject(NAMED))).to.equal(undefined)
  })
})
