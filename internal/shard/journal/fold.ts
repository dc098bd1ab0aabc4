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
  SeenRecord,
} from './records.ts'
import { readSnapshot } from './snapshot.ts'
import { emptyState, type FoldState, isOver, type OpenBatch } from './state.ts'

/** Drops stay distinguishable from items that are over for another reason for so long. */
export const DROP_MEMORY_MS = 60_000

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
      return applySeen(state, record)
    case 'snapshot-begin':
    case 'snapshot-part':
    case 'snapshot-end':
      return true
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
  const batch: OpenBatch = { ...name, seal, attempt: 1, nextAt: 0 }
  state.batches.set(batchKey(name), batch)
  for (const { seq: at, index } of seal.positions) state.sealed.set(at, index, batch)
  return true
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

function applySeen({ seen }: FoldState, { upTo, writers }: SeenRecord): boolean {
  if (upTo <= seen.upTo) return false
  seen.upTo = upTo
  for (const name of writers) seen.note(name)
  return true
}

/** Invariant: the times of the drops ascend in their order. */
function forgetDrops(state: FoldState, at: number): void {
  if (state.newestDropAt > at) cutBackDrops(state, at)
  for (const [itemId, drop] of state.drops) {
    if (drop.at > at - DROP_MEMORY_MS) break
    state.drops.delete(itemId)
  }
}

/** An earlier owner's clock was ahead: left as they are, its drops would outlive, and hold, all later ones. */
function cutBackDrops(state: FoldState, at: number): void {
  for (const [itemId, drop] of state.drops) if (drop.at > at) state.drops.set(itemId, { ...drop, at })
  state.newestDropAt = at
}

/** Its owner stopped before it was complete. */
export interface UnfinishedSnapshot {
  /** Sequence of the begin's commit. */
  readonly begin: number
  readonly parts: readonly Uint8Array[]
}

/**
 * Folds a journal from its oldest message on. A purge takes its beginning, before or while it is read: then the fold is not exact
 * until the next complete snapshot. The state is that after the begin of the snapshot, and the commits since then are
 * applied again on top of it.
 */
export class JournalFold {
  state: FoldState = emptyState()
  /** Sequence of the begin of the last complete snapshot: what stands below it is in the snapshot, but for keeps. 0: none. */
  snapshotBegin = 0
  /** Commits below this sequence are missing in `state`; null: none is. */
  #missingBelow: number | null
  #lastSeq: number
  /** Of a snapshot without its end; null: there is none. */
  #begin: number | null = null
  #parts: Uint8Array[] = []
  /** Commits behind that begin, while the fold is not exact. */
  #since: StoredCommit[] = []

  /** `firstSeq`: of the oldest message; `origin`: of the first message that the journal ever had. */
  constructor(firstSeq: number, origin: number) {
    this.#lastSeq = firstSeq - 1
    this.#missingBelow = firstSeq > origin ? firstSeq : null
  }

  /** Commits below this sequence are missing in `state`; null: none is, the fold is exact. */
  get missingBelow(): number | null {
    return this.#missingBelow
  }

  /** Sequence of the last commit that was applied. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  /** The last snapshot that was begun and not ended: a later owner may do so. null: there is none. */
  get unfinished(): UnfinishedSnapshot | null {
    return this.#begin === null ? null : { begin: this.#begin, parts: this.#parts }
  }

  /** Answers as `applyCommit`. While the fold is not exact it may miss the batch that a record names: then the record counts. */
  apply(stored: StoredCommit): boolean[] {
    if (stored.seq > this.#lastSeq + 1) this.#missBelow(stored.seq)
    this.#lastSeq = stored.seq
    const exact = this.#missingBelow === null
    const types = stored.commit.records.map((record) => record.type)
    const applied = applyCommit(this.state, stored)
    if (this.#begin !== null && !exact) this.#since.push(stored)
    if (types.includes('snapshot-begin')) this.#open(stored.seq)
    for (const record of stored.commit.records)
      if (record.type === 'snapshot-part') this.#parts.push(record.bytes)
    if (this.#begin !== null && types.includes('snapshot-end')) this.#complete(this.#begin)
    return exact ? applied : applied.map(() => true)
  }

  /** The reading passed over commits. A snapshot that was begun before them has lost its begin, too. */
  #missBelow(seq: number): void {
    this.#missingBelow = seq
    this.#open(null)
  }

  #open(begin: number | null): void {
    this.#begin = begin
    this.#parts = []
    this.#since = []
  }

  #complete(begin: number): void {
    if (this.#missingBelow !== null) {
      this.state = readSnapshot(Buffer.concat(this.#parts))
      for (const stored of this.#since) applyCommit(this.state, stored)
      this.#missingBelow = null
    }
    this.snapshotBegin = begin
    this.#open(null)
  }
}
