/**
 * The state of a shard as a pure fold of its journal (docs/architecture/protocol.md, "The fold"). The same commits
 * give the same state on every node, and the owner acts only on what the fold answers.
 *
 * Invariant: an item is over once a done, dead, drop or discard record named it, and stays over: a record
 * that names what is already over, or a batch that does not exist, is void.
 */

import { type BatchName, batchKey } from './batch-name.ts'
import type {
  Commit,
  DiscardRecord,
  DropRecord,
  JournalRecord,
  KeepRecord,
  Position,
  SealRecord,
} from './records.ts'
import { type FoldState, isOver, type OpenBatch } from './state.ts'

/** Drops stay distinguishable from items that are over for another reason for so long. */
export const DROP_MEMORY_MS = 60_000

/** More than so many push the oldest out: who repeats everything would make the state too large for a snapshot. */
export const MOST_DROPS = 100_000

/** A commit with its place in the journal. */
export interface StoredCommit {
  readonly seq: number
  readonly commit: Commit
}

/** Applies one commit; answers for each of its records whether it took effect (false: void). */
export function applyCommit(state: FoldState, { seq, commit }: StoredCommit): boolean[] {
  if (commit.highWater && commit.highWater.seq > (state.highWater?.seq ?? 0))
    state.highWater = commit.highWater
  const applied = commit.records.map((record) => applyRecord(state, record, seq, commit))
  forgetDrops(state, commit.at)
  return applied
}

function applyRecord(state: FoldState, record: JournalRecord, seq: number, commit: Commit): boolean {
  switch (record.type) {
    case 'epoch':
      state.epoch = seq
      state.boot = commit.boot
      return true
    case 'release':
      state.released = new Map(record.batches.map((batch) => [batchKey(batch), batch.deadline]))
      return true
    case 'seal':
      return applySeal(state, record, seq)
    case 'unseal':
      return removeBatch(state, record) !== undefined
    case 'attempt': {
      const batch = state.batches.get(batchKey(record))
      if (!batch || record.attempt <= batch.attempt) return false
      batch.attempt = record.attempt
      batch.nextAt = record.nextAt
      // Whoever was told of the attempt that ran at a hand-over wrote this: nobody owes its result any more.
      state.released.delete(batchKey(record))
      return true
    }
    case 'done':
    case 'dead':
      return settleBatch(state, record)
    case 'drop':
      return applyDrop(state, record, commit.at)
    case 'discard':
      return applyDiscard(state, record)
    case 'keep':
      return applyKeep(state, record, seq)
    case 'horizon':
      return raiseHorizon(state, record.seq)
    case 'seen':
      return state.seen.apply(record)
  }
}

export function raiseHorizon(state: FoldState, seq: number): boolean {
  if (seq <= state.horizon) return false
  state.horizon = seq
  state.finished.pruneBelow(seq)
  return true
}

function applySeal(state: FoldState, seal: SealRecord, seq: number): boolean {
  const name = { groupId: seal.groupId, version: seq }
  if (state.batches.has(batchKey(name))) return false
  for (const position of seal.positions) {
    if (isOver(state, position) || state.sealed.has(position.seq, position.index)) return false
  }
  addBatch(state, { ...name, seal, attempt: 1, nextAt: 0 })
  return true
}

export function addBatch(state: FoldState, batch: OpenBatch): void {
  state.batches.set(batchKey(batch), batch)
  for (const { seq, index } of batch.seal.positions) state.sealed.set(seq, index, batch)
}

function removeBatch(state: FoldState, name: BatchName): OpenBatch | undefined {
  const key = batchKey(name)
  const batch = state.batches.get(key)
  if (!batch) return undefined
  state.batches.delete(key)
  state.released.delete(key)
  for (const { seq, index } of batch.seal.positions) state.sealed.delete(seq, index)
  return batch
}

function settleBatch(state: FoldState, name: BatchName): boolean {
  const batch = removeBatch(state, name)
  if (!batch) return false
  for (const position of batch.seal.positions) finish(state, position)
  return true
}

function finish(state: FoldState, { seq, index }: Position): void {
  state.kept.delete(seq, index)
  if (seq >= state.horizon) state.finished.add(seq, index)
}

function applyDrop(state: FoldState, { position, itemId, originalItemId }: DropRecord, at: number): boolean {
  if (isOver(state, position) || state.sealed.has(position.seq, position.index)) return false
  finish(state, position)
  // The same item stored twice: what its first drop says of it stays.
  if (itemId === originalItemId && state.drops.has(itemId)) return true
  // The same item may have been dropped before: the order is that of the last drops.
  state.drops.delete(itemId)
  state.drops.set(itemId, { ...position, itemId, originalItemId, at })
  state.newestDropAt = Math.max(state.newestDropAt, at)
  return true
}

function applyDiscard(state: FoldState, record: DiscardRecord): boolean {
  if (record.batch) return settleBatch(state, record.batch)
  let applied = false
  for (const position of record.positions) {
    if (isOver(state, position) || state.sealed.has(position.seq, position.index)) continue
    finish(state, position)
    applied = true
  }
  return applied
}

function applyKeep(state: FoldState, record: KeepRecord, commit: number): boolean {
  let applied = false
  record.items.forEach(({ position }, ordinal) => {
    if (isOver(state, position)) return
    state.kept.set(position.seq, position.index, { commit, ordinal })
    if (position.seq >= state.horizon) state.finished.add(position.seq, position.index)
    applied = true
  })
  return applied
}

/** Invariant: the times of the drops ascend in their order. */
function forgetDrops(state: FoldState, at: number): void {
  if (state.newestDropAt > at) cutBackDrops(state, at)
  for (const [itemId, drop] of state.drops) {
    if (drop.at > at - DROP_MEMORY_MS && state.drops.size <= MOST_DROPS) break
    state.drops.delete(itemId)
  }
}

/** An earlier owner's clock was ahead: left as they are, its drops would outlive, and hold, all later ones. */
function cutBackDrops(state: FoldState, at: number): void {
  for (const [itemId, drop] of state.drops) if (drop.at > at) state.drops.set(itemId, { ...drop, at })
  state.newestDropAt = at
}
