import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { CorruptBytesError } from '../../../internal/shard/journal/bytes.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import type { JournalRecord, Position } from '../../../internal/shard/journal/records.ts'
import {
  decodeSnapshot,
  encodeSnapshot,
  freezeState,
  readSnapshot,
  writeSnapshot,
} from '../../../internal/shard/journal/snapshot.ts'
import { emptyState, type FoldState } from '../../../internal/shard/journal/state.ts'
import { anyRecord, commitOf, FIRST, groupId, seal, uuid } from '../journal-records.ts'

const SEED = Number(process.env.FOLD_SEED ?? Math.floor(Math.random() * 2 ** 31))

/** Entries of a slice, and those around the end of one. */
const SLICE = 2_500
const COUNTS = [0, 1, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE + 7]

function applyAll(state: FoldState, first: number, commits: readonly JournalRecord[][]): void {
  for (const [number, records] of commits.entries())
    applyCommit(state, { seq: first + number, commit: commitOf(records) })
}

const positions = (from: number, count: number): Position[] =>
  Array.from({ length: count }, (_, n) => ({ seq: from + 3 * Math.floor(n / 40), index: n % 40 }))

/** So many finished positions, kept items, batches of 100 items, and drops. */
function stateOf(count: number): FoldState {
  const state = emptyState()
  const keeps = positions(FIRST + 1_000_000, count).map((position) => ({
    position,
    at: 1,
    item: Buffer.of(1),
  }))
  const groups = Array.from({ length: Math.ceil(count / 100) }, (_, n) => n)
  applyAll(state, FIRST, [
    [{ type: 'discard', batch: null, positions: positions(FIRST, count) }],
    // Neighbours stand in different commits.
    ...[0, 1, 2].map((third): JournalRecord[] => [
      { type: 'keep', items: keeps.filter((_, n) => n % 3 === third) },
    ]),
    ...groups.map((n) => [seal(n % 250, positions(FIRST + 2_000_000 + 1_000 * n, 100))]),
    positions(FIRST + 20_000_000, count).map((position, n) => {
      return { type: 'drop', position, itemId: uuid(n), originalItemId: uuid(n + count) }
    }),
    [{ type: 'seen', upTo: FIRST, writers: [{ writer: 'a', number: 7 }] }],
    [
      {
        type: 'release',
        batches: groups.map((n) => ({ groupId: groupId(n % 250), version: FIRST + 4 + n, deadline: n })),
      },
    ],
  ])
  return state
}

describe('snapshots', () => {
  for (const count of COUNTS) {
    it(`hold ${count} entries of each kind`, () => {
      const state = stateOf(count)
      const again = readSnapshot(writeSnapshot(state))
      expect([...again.finished.sorted()]).to.deep.equal([...state.finished.sorted()])
      expect([...again.kept.sorted()]).to.deep.equal([...state.kept.sorted()])
      expect(again.kept.oldestCommit).to.equal(state.kept.oldestCommit)
      for (const named of ['batches', 'drops', 'released', 'newestDropAt'] as const)
        expect(again[named]).to.deep.equal(state[named])
      expect(again.seen.record()).to.deep.equal(state.seen.record())
      expect(again.sealed.size).to.equal(state.sealed.size)
    })
  }

  it('are written and read in slices', () => {
    const state = stateOf(3 * SLICE)
    const lengths = Array.from(encodeSnapshot(freezeState(state)), ({ length }) => length)
    const reading = decodeSnapshot(writeSnapshot(state))
    let slices = 1
    while (!reading.next().done) slices++
    for (const many of [lengths.length, slices]) expect(many).to.be.at.least(12)
    expect(Math.max(...lengths)).to.be.below(SLICE * 48)
  })

  it(`of a frozen state are those of its moment, whatever follows (FOLD_SEED=${SEED})`, () => {
    const commits = fc.array(fc.array(anyRecord, { minLength: 1, maxLength: 3 }), { maxLength: 25 })
    fc.assert(
      fc.property(commits, commits, (before, after) => {
        const state = emptyState()
        applyAll(state, FIRST, before)
        const then = writeSnapshot(state)
        const frozen = freezeState(state)
        applyAll(state, FIRST + before.length, after)
        expect(Buffer.concat([...encodeSnapshot(frozen)]).equals(then)).to.equal(true)
        expect(writeSnapshot(readSnapshot(then)).equals(then)).to.equal(true)
      }),
      { numRuns: 1_000, seed: SEED },
    )
  })

  it('are refused where they end early, or have another version', () => {
    const bytes = writeSnapshot(stateOf(5))
    for (let end = 0; end < bytes.length; end++)
      expect(() => readSnapshot(bytes.subarray(0, end)), `${end} bytes`).to.throw(CorruptBytesError)
    expect(() => readSnapshot(Buffer.concat([Buffer.of(2), bytes.subarray(1)]))).to.throw('version 2')
  })
})
