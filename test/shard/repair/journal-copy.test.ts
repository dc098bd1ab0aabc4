/** The copy of a journal: what it holds of the kept items, and how much of them is in memory at once. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Log } from '../../../internal/shard/broker.ts'
import { ByteReader } from '../../../internal/shard/journal/bytes.ts'
import { decodeRecord, encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import type { KeptItem } from '../../../internal/shard/journal/records.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { completeCopy, copiedState, copyJournal } from '../../../internal/shard/repair/journal-copy.ts'
import type { JournalCopies } from '../../../internal/shard/repair/ports.ts'
import { commitOf } from '../journal-records.ts'

const kept = (seq: number): KeptItem => ({ position: { seq, index: 0 }, at: seq, item: Buffer.from([seq]) })

/** Commit 7 keeps 2 and 4, commit 9 keeps 1, 3 and 5; 3 is over. */
const COMMITS = new Map([
  [7, [2, 4]],
  [9, [1, 3, 5]],
])

function content() {
  const state = emptyState()
  const asked: number[] = []
  for (const [commit, seqs] of COMMITS)
    for (const [ordinal, seq] of seqs.entries()) state.kept.set(seq, 0, { commit, ordinal })
  state.kept.delete(3, 0)
  const get = async (commit: number) => {
    asked.push(commit)
    const keep = { type: 'keep', items: COMMITS.get(commit)!.map(kept) } as const
    return { seq: commit, at: 0, data: encodeCommit(commitOf([keep]), [encodeRecord(keep)]), msgId: null }
  }
  return { state, asked, journal: { get } as Partial<Log> as Log }
}

function copiesOf(messages: readonly Uint8Array[]): JournalCopies {
  async function* read(from: number, to: number) {
    yield* messages.slice(from, to)
  }
  return { load: async () => ({ length: messages.length, read }) } as Partial<JournalCopies> as JournalCopies
}

describe('the copy of a journal', () => {
  it('reads a commit once the one before it is stored', async () => {
    const { state, asked, journal } = content()
    for await (const _ of copyJournal(journal, state, [])) if (asked.length === 1) break
    expect(asked).to.deep.equal([7])
  })

  it('holds the live items of each commit, and where they are', async () => {
    const { state, journal } = content()
    const messages = await Array.fromAsync(copyJournal(journal, state, []))
    const copy = (await completeCopy(copiesOf(messages), 0))!
    expect(copy.commits).to.equal(2)
    const items = messages.slice(0, 2).map((message) => {
      const record = decodeRecord(new ByteReader(message))
      return record.type === 'keep'
        ? record.items.map(({ position, at, item }) => [position.seq, at, ...item])
        : []
    })
    expect(items).to.deep.equal([
      [
        [2, 2, 2],
        [4, 4, 4],
      ],
      [
        [1, 1, 1],
        [5, 5, 5],
      ],
    ])
    const places = [...(await copiedState(copy)).kept.sorted()]
    expect(places.map(([{ seq }, { commit, ordinal }]) => [seq, commit, ordinal])).to.deep.equal([
      [1, 1, 0],
      [2, 0, 0],
      [4, 0, 1],
      [5, 1, 1],
    ])
  })

  it('is none without its last message', async () => {
    const { state, journal } = content()
    const messages = await Array.fromAsync(copyJournal(journal, state, []))
    expect(await completeCopy(copiesOf(messages.slice(0, -1)), 0)).to.equal(undefined)
    expect(await completeCopy(copiesOf(messages.slice(1)), 0)).to.equal(undefined)
    expect(await completeCopy(copiesOf([]), 0)).to.equal(undefined)
  })

  it('fails when the journal does not hold a kept item where it should', async () => {
    const { state, journal } = content()
    state.kept.set(6, 0, { commit: 9, ordinal: 3 })
    const failure = await Array.fromAsync(copyJournal(journal, state, [])).catch((error: Error) => error)
    expect(failure).to.have.property('message', 'the journal holds 4 of 5 kept items')
  })
})
