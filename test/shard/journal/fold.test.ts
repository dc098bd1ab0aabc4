import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { applyCommit, DROP_MEMORY_MS, MOST_DROPS } from '../../../internal/shard/journal/fold.ts'
import type { Commit, JournalRecord, Position } from '../../../internal/shard/journal/records.ts'
import { readSnapshot, writeSnapshot } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState, type FoldState, isOver } from '../../../internal/shard/journal/state.ts'
import { anyRecord, commitOf, FIRST, groupId, seal, settled, uuid } from '../journal-records.ts'
import { NaiveShard } from '../naive-shard.ts'

const SEED = Number(process.env.FOLD_SEED ?? Math.floor(Math.random() * 2 ** 31))
const at = (seq: number, index = 0): Position => ({ seq: FIRST + seq, index })

/** One commit a list; the sequences count from FIRST. */
function fold(...commits: JournalRecord[][]): { state: FoldState; applied: boolean[][] } {
  const state = emptyState()
  const applied = commits.map((records, index) =>
    applyCommit(state, { seq: FIRST + index, commit: commitOf(records) }),
  )
  return { state, applied }
}

describe('fold of the journal', () => {
  it('seal: names a batch by the sequence of its commit', () => {
    const { state } = fold([seal(0, [at(1), at(2)])])
    const [batch] = [...state.batches.values()]
    expect(batch).to.include({ groupId: groupId(0), version: FIRST, attempt: 1 })
    expect(isOver(state, at(1))).to.equal(false)
  })

  it('seal: void when an item is over, or sealed already', () => {
    const { state, applied } = fold(
      [seal(0, [at(1)])],
      [seal(1, [at(1), at(2)])],
      [settled('done', 0, FIRST)],
      [seal(1, [at(1)])],
    )
    expect(applied).to.deep.equal([[true], [false], [true], [false]])
    expect(state.batches.size).to.equal(0)
  })

  it('done and dead: end a batch and its items once; void for a batch that does not exist', () => {
    const { state, applied } = fold(
      [seal(0, [at(1, 3)])],
      [settled('done', 0, FIRST), settled('dead', 0, FIRST)],
      [settled('done', 1, FIRST)],
    )
    expect(applied).to.deep.equal([[true], [true, false], [false]])
    expect(isOver(state, at(1, 3))).to.equal(true)
    expect(isOver(state, at(1, 2))).to.equal(false)
  })

  it('unseal: gives the items of a batch back', () => {
    const { state, applied } = fold(
      [seal(0, [at(1)])],
      [{ type: 'unseal', groupId: groupId(0), version: FIRST }],
      [seal(0, [at(1)])],
    )
    expect(applied.flat()).to.deep.equal([true, true, true])
    expect([...state.batches.values()].map(({ version }) => version)).to.deep.equal([FIRST + 2])
  })

  it('attempt: only grows', () => {
    const attempt = (n: number, nextAt: number): JournalRecord => ({
      type: 'attempt',
      groupId: groupId(0),
      version: FIRST,
      attempt: n,
      nextAt,
    })
    const { state, applied } = fold([seal(0, [at(1)])], [attempt(2, 70), attempt(2, 80), attempt(1, 90)])
    expect(applied[1]).to.deep.equal([true, false, false])
    expect([...state.batches.values()][0]).to.include({ attempt: 2, nextAt: 70 })
  })

  it('drop: ends one item, void when it is sealed or over, forgotten after a minute', () => {
    const drop = (position: Position, id: number): JournalRecord => ({
      type: 'drop',
      position,
      itemId: uuid(id),
      originalItemId: uuid(0),
    })
    const { state, applied } = fold([seal(0, [at(1)])], [drop(at(1), 1), drop(at(2), 2), drop(at(2), 3)])
    expect(applied[1]).to.deep.equal([false, true, false])
    expect([...state.drops.keys()]).to.deep.equal([uuid(2)])
    applyCommit(state, { seq: FIRST + 9, commit: commitOf([], DROP_MEMORY_MS) })
    expect(state.drops.size).to.equal(0)
    expect(isOver(state, at(2))).to.equal(true)
  })

  it('drop: one that was stamped by a clock that was ahead is forgotten a minute after the next commit', () => {
    const hour = 3_600_000
    const state = emptyState()
    const drop = (id: number): JournalRecord => ({
      type: 'drop',
      position: at(id),
      itemId: uuid(id),
      originalItemId: uuid(0),
    })
    const commit = (seq: number, ids: number[], time: number) =>
      applyCommit(state, { seq: FIRST + seq, commit: commitOf(ids.map(drop), time) })
    commit(1, [1], hour)
    commit(2, [2], 10_000)
    commit(3, [3], 20_000)
    expect([...state.drops.keys()]).to.deep.equal([1, 2, 3].map(uuid))
    commit(4, [], 10_000 + DROP_MEMORY_MS)
    expect([...state.drops.keys()]).to.deep.equal([uuid(3)])
    const restored = readSnapshot(writeSnapshot(state))
    applyCommit(restored, { seq: FIRST + 5, commit: commitOf([], 0) })
    applyCommit(restored, { seq: FIRST + 6, commit: commitOf([], DROP_MEMORY_MS) })
    expect(restored.drops.size).to.equal(0)
  })

  it('drop: of an item that was dropped before, counts from the last time', () => {
    const state = emptyState()
    const drop = (seq: number, itemId: string, originalItemId: string): JournalRecord => ({
      type: 'drop',
      position: at(seq),
      itemId,
      originalItemId,
    })
    const commit = (seq: number, record: JournalRecord[], time: number) =>
      applyCommit(state, { seq: FIRST + seq, commit: commitOf(record, time) })
    commit(1, [drop(1, uuid(1), uuid(8))], 0)
    commit(2, [drop(2, uuid(2), uuid(8))], 1_000)
    commit(3, [drop(3, uuid(1), uuid(9))], 50_000)
    commit(4, [], 1_000 + DROP_MEMORY_MS)
    expect([...state.drops.keys()]).to.deep.equal([uuid(1)])
  })

  it('drop: the oldest is forgotten once there are too many for a snapshot', () => {
    const drops = Array.from({ length: MOST_DROPS + 1 }, (_, n): JournalRecord => {
      return { type: 'drop', position: at(n), itemId: uuid(n + 1), originalItemId: uuid(0) }
    })
    const { state } = fold(drops)
    expect(state.drops.size).to.equal(MOST_DROPS)
    expect(state.drops.has(uuid(1))).to.equal(false)
  })

  it('discard: ends waiting items and named batches, not sealed items of others', () => {
    const { state, applied } = fold(
      [seal(0, [at(1)]), seal(1, [at(2)])],
      [{ type: 'discard', batch: null, positions: [at(1), at(3)] }],
      [{ type: 'discard', batch: { groupId: groupId(1), version: FIRST }, positions: [] }],
    )
    expect(applied.slice(1)).to.deep.equal([[true], [true]])
    expect([at(1), at(2), at(3)].map((position) => isOver(state, position))).to.deep.equal([
      false,
      true,
      true,
    ])
  })

  it('keep: carries a live item over the horizon, void for what is over', () => {
    const keep = (...positions: Position[]): JournalRecord => ({
      type: 'keep',
      items: positions.map((position) => ({ position, at: 1, item: Buffer.from('x') })),
    })
    const { state, applied } = fold(
      [{ type: 'discard', batch: null, positions: [at(1)] }],
      [keep(at(1), at(2))],
      [{ type: 'horizon', seq: FIRST + 5 }],
      [seal(0, [at(2)])],
      [keep(at(2))],
      [settled('done', 0, FIRST + 3)],
      [keep(at(2))],
    )
    expect(applied.flat()).to.deep.equal([true, true, true, true, true, true, false])
    expect(isOver(state, at(2))).to.equal(true)
    expect(state.kept.size).to.equal(0)
  })

  it('horizon: never goes back', () => {
    const { state, applied } = fold(
      [{ type: 'horizon', seq: FIRST + 5 }],
      [{ type: 'horizon', seq: FIRST + 4 }],
    )
    expect(applied.flat()).to.deep.equal([true, false])
    expect(isOver(state, at(4, 7))).to.equal(true)
    expect(isOver(state, at(5))).to.equal(false)
  })

  it('seen: notes the last pack of each writer, and never goes back', () => {
    const seen = (upTo: number, ...writers: [string, number][]): JournalRecord => ({
      type: 'seen',
      upTo: FIRST + upTo,
      writers: writers.map(([writer, number]) => ({ writer, number })),
    })
    const { state, applied } = fold([seen(5, ['a', 7])], [seen(5, ['b', 1])], [seen(9, ['a', 3], ['c', 0])])
    expect(applied.flat()).to.deep.equal([true, false, true])
    expect(state.seen.record()).to.deep.equal(seen(9, ['a', 7], ['c', 0]))
  })

  it('drop: of the same item stored twice leaves what an earlier drop says of it', () => {
    const drop = (seq: number, originalItemId: string): JournalRecord => ({
      type: 'drop',
      position: at(seq),
      itemId: uuid(1),
      originalItemId,
    })
    const { state, applied } = fold([drop(1, uuid(7))], [drop(2, uuid(1))])
    expect(applied.flat()).to.deep.equal([true, true])
    expect(state.drops.get(uuid(1))?.originalItemId).to.equal(uuid(7))
  })

  it('release: names what is in flight until it is settled', () => {
    const batch = { groupId: groupId(0), version: FIRST }
    const { state } = fold([seal(0, [at(1)])], [{ type: 'release', batches: [{ ...batch, deadline: 9 }] }])
    expect([...state.released.values()]).to.deep.equal([9])
    applyCommit(state, { seq: FIRST + 3, commit: commitOf([settled('done', 0, FIRST)]) })
    expect(state.released.size).to.equal(0)
  })

  it('release: of what was attempted since nobody owes the result any more', () => {
    const batch = { groupId: groupId(0), version: FIRST }
    const { state } = fold(
      [seal(0, [at(1)])],
      [{ type: 'release', batches: [{ ...batch, deadline: 9 }] }],
      [{ type: 'attempt', ...batch, attempt: 2, nextAt: 5 }],
    )
    expect(state.released.size).to.equal(0)
    expect([...state.batches.values()]).to.have.length(1)
  })

  it('keeps the highest high-water mark of any commit', () => {
    const state = emptyState()
    const mark = (seq: number): Commit => ({ ...commitOf([]), highWater: { seq, packId: `p${seq}` } })
    for (const seq of [5, 9, 7]) applyCommit(state, { seq: FIRST + seq, commit: mark(seq) })
    expect(state.highWater).to.deep.equal({ seq: 9, packId: 'p9' })
  })

  it(`agrees with a naive model over random histories (FOLD_SEED=${SEED})`, () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(anyRecord, { minLength: 1, maxLength: 3 }), { maxLength: 40 }),
        (history) => {
          const naive = new NaiveShard()
          const state = emptyState()
          history.forEach((records, index) => {
            const seq = FIRST + index
            const applied = applyCommit(state, { seq, commit: commitOf(records) })
            expect(applied).to.deep.equal(records.map((record) => naive.apply(record, seq)))
          })
          naive.expectSame(state)
        },
      ),
      { numRuns: 3_000, seed: SEED },
    )
  })

  it(`gives the same state from a snapshot with what follows as from the beginning (FOLD_SEED=${SEED})`, () => {
    const part = fc.array(fc.array(anyRecord, { minLength: 1, maxLength: 3 }), { maxLength: 15 })
    fc.assert(
      fc.property(part, part, (before, behind) => {
        const { state } = fold(...before)
        const again = readSnapshot(writeSnapshot(state))
        const applied = [state, again].map((each) =>
          behind.map((records, index) =>
            applyCommit(each, { seq: FIRST + before.length + index, commit: commitOf(records) }),
          ),
        )
        expect(applied[1]).to.deep.equal(applied[0])
        expect(writeSnapshot(again).equals(writeSnapshot(state))).to.equal(true)
      }),
      { numRuns: 500, seed: SEED },
    )
  })

  it('reads back its own snapshots', () => {
    const { state } = fold(
      [seal(0, [at(1), at(2, 35)])],
      [{ type: 'discard', batch: null, positions: [at(3, 33), at(3, 2)] }],
    )
    expect(writeSnapshot(readSnapshot(writeSnapshot(state))).equals(writeSnapshot(state))).to.equal(true)
  })
})
