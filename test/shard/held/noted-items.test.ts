/** What a claim remembers of kept items while it reads the journal (docs/architecture/protocol.md, "Memory"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { decodePack, encodePack } from '../../../internal/domain/pack.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { SnapshotArchive } from '../../../internal/shard/archive/snapshot-archive.ts'
import type { Log, LogMessage } from '../../../internal/shard/broker.ts'
import { readJournal } from '../../../internal/shard/claim/journal-reading.ts'
import { listKept, NotedItem, Notes } from '../../../internal/shard/held/noted-items.ts'
import { decodeCommit, encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { commitName } from '../../../internal/shard/journal/commit-name.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import type { JournalRecord, KeptItem, Position } from '../../../internal/shard/journal/records.ts'
import { encodeSnapshot, freezeState } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState, type FoldState } from '../../../internal/shard/journal/state.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { settled as settledTurn } from '../../ingest/support.ts'
import { commitOf, groupId, UID, uuid } from '../journal-records.ts'
import { memoryArchive } from '../memory-archive.ts'

/** As a keep carries it; every other sender gave the message id. */
function kept(seq: number, index = 0): KeptItem {
  const item = {
    itemId: uuid(seq),
    bufferUid: UID,
    groupToken: groupId(seq % 2),
    groupKey: 'k',
    messageId: `m${seq}`,
    explicit: seq % 2 === 1,
    credits: 1,
    receivedAt: 1,
    payload: Buffer.from(`"${'x'.repeat(seq % 7)}"`),
  }
  const pack = encodePack(Buffer.alloc(12), null, [item])
  let bytes = pack
  decodePack(pack, ({ offset, end }) => {
    bytes = pack.subarray(offset, end)
  })
  return { position: { seq, index }, at: 1_700_000_000_000 + seq, item: bytes }
}

const keep = (...seqs: number[]): JournalRecord => ({ type: 'keep', items: seqs.map((seq) => kept(seq)) })
const over = (...seqs: number[]): JournalRecord => ({
  type: 'discard',
  batch: null,
  positions: seqs.map((seq): Position => ({ seq, index: 0 })),
})
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1)

/** A journal that begins with sequence 1, and its log. */
function journalOf(...commits: JournalRecord[][]) {
  const messages = commits.map((records, n): LogMessage => {
    const data = encodeCommit(commitOf(records), records.map(encodeRecord))
    return { seq: n + 1, at: 0, data, msgId: null }
  })
  const log = {
    state: async () => ({ firstSeq: messages[0]?.seq, origin: 1 }),
    get: async (seq: number) => messages.find((message) => message.seq === seq),
    async *range(from: number, to: number) {
      yield* messages.filter(({ seq }) => seq >= from && seq <= to)
    },
  } as unknown as Log
  return { messages, log, last: commits.length }
}

/** As a claim that found no snapshot. */
function read({ messages }: ReturnType<typeof journalOf>) {
  const notes = new Notes()
  const state = emptyState()
  for (const { seq, data } of messages) {
    const commit = decodeCommit(data)
    applyCommit(state, { seq, commit })
    notes.take({ seq, commit }, data, state)
  }
  return state
}

/** How many items the state has notes of. */
const notesIn = (state: FoldState) => [...state.kept.values()].filter((at) => at instanceof NotedItem).length

/** A journal in the hands of its claim, which notes what is asked of it. */
function claimed() {
  const asked: string[] = []
  const journal = { prove: async () => void asked.push('prove') }
  return { asked, journal }
}

describe('the notes of kept items', () => {
  it('tells of each what its place needs, in the order of the positions, without the bytes of its commit', async () => {
    const journal = journalOf([keep(3, 1)], [keep(2)])
    const state = read(journal)
    const listed = await listKept(state, { shard: 0, clock: new ManualClock(), ...journal, ...claimed() })
    expect(listed.map(({ seq, message }) => [seq, message.seq])).to.deep.equal([
      [1, 1],
      [2, 2],
      [3, 1],
    ])
    const [first, second, third] = listed
    expect(first).to.include({ at: 1_700_000_000_001, explicit: true, itemId: uuid(1), messageId: 'm1' })
    expect(first).to.include({ groupToken: groupId(1), bufferUid: UID, payloadBytes: 3 })
    expect(second).to.include({ explicit: false, itemId: '', messageId: '' })
    const { item } = kept(3)
    expect(Buffer.from(journal.messages[0]!.data).subarray(third!.offset, third!.end)).to.deep.equal(
      Buffer.from(item),
    )
    expect(first!.message === third!.message).to.equal(true)
    expect([first!.message.data, notesIn(state)]).to.deep.equal([null, 0])
  })

  it('notes an item where it stands at last, and none that is over', async () => {
    const carried = Array.from({ length: 3 }, () => [keep(1, 2, 3)])
    const state = read(journalOf(...carried, [over(2)]))
    expect([...state.kept.sorted()].map(([{ seq }, { commit }]) => [seq, commit])).to.deep.equal([
      [1, 3],
      [3, 3],
    ])
    expect(notesIn(state)).to.equal(2)
  })

  it('notes what a snapshot names, where that still stands', async () => {
    const journal = journalOf([keep(1, 2)], [keep(2)], [{ type: 'horizon', seq: 9 }], [keep(1)])
    const whole = read(journal)
    const clock = systemClock()
    const archive = new SnapshotArchive({ archive: memoryArchive(), clock, writer: 'a' })
    const name = commitName(4, journal.messages.at(-1)!.data)
    await archive.write(name, encodeSnapshot(freezeState(whole)), () => false)
    // The keep of both is purged.
    journal.messages.shift()
    const { state } = await readJournal({ journal: journal.log, archive, clock }, 4)
    expect([...state.kept.values()].map((at) => at instanceof NotedItem && at.message.seq)).to.deep.equal([
      4, 2,
    ])
  })

  it('are listed in turns of the event loop', async () => {
    const state = read(journalOf([keep(...upTo(6_000))]))
    const clock = new ManualClock()
    const listing = listKept(state, { shard: 0, clock, ...journalOf(), ...claimed() })
    let turns = 0
    for (await settledTurn(); clock.pending > 0; await settledTurn()) {
      turns++
      clock.advance(0)
    }
    expect([(await listing).length, turns]).to.deep.equal([6_000, 2])
  })

  describe('that lacks an item', () => {
    /** Names an item in the second commit that was not noted. */
    async function lacking() {
      const journal = journalOf([keep(1)], [keep(2, 3)], [])
      const state = read(journal)
      state.kept.replace({ seq: 2, index: 0 }, { commit: 2, ordinal: 0 })
      state.kept.replace({ seq: 3, index: 0 }, { commit: 2, ordinal: 1 })
      return { journal, state }
    }
    const clock = new ManualClock()

    it('reads it by its commit', async () => {
      const { journal, state } = await lacking()
      const { asked, journal: own } = claimed()
      const listed = await listKept(state, { shard: 0, clock, log: journal.log, journal: own })
      expect(listed.map(({ seq }) => seq)).to.deep.equal([1, 2, 3])
      expect(asked).to.deep.equal([])
    })

    it('reads it once more behind a proof: a server that was behind had not got it', async () => {
      const { journal, state } = await lacking()
      const { asked, journal: own } = claimed()
      const { range } = journal.log
      journal.log.range = (from, to) => range(from, asked.length === 0 ? 1 : to)
      const listed = await listKept(state, { shard: 0, clock, log: journal.log, journal: own })
      expect(listed.length).to.equal(3)
      expect(asked).to.deep.equal(['prove'])
    })

    for (const [what, instead] of Object.entries({
      'is gone': undefined,
      'holds something else': keep(4, 5),
    })) {
      it(`is a loss when the commit ${what}, with a proof before the answer and one behind it`, async () => {
        const { journal, state } = await lacking()
        const { asked, journal: own } = claimed()
        const other = instead && journalOf([], [instead]).messages[1]
        journal.messages.splice(1, 1, ...(other ? [other] : []))
        const error = await listKept(state, { shard: 0, clock, log: journal.log, journal: own }).catch(
          (e) => e,
        )
        expect(error).to.be.instanceOf(LostTailError)
        expect(asked).to.deep.equal(['prove', 'prove'])
      })
    }

    it('is no loss when a server answers that is behind: the shard is claimed again', async () => {
      const { journal, state } = await lacking()
      journal.messages.splice(1)
      const error = await listKept(state, { shard: 0, clock, log: journal.log, ...claimed() }).catch((e) => e)
      expect(error).to.be.instanceOf(Error).and.not.instanceOf(LostTailError)
    })
  })
})
