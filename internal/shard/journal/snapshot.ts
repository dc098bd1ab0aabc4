/**
 * A shard's state as bytes: the parts of a snapshot joined. Without payloads: a kept item is named by its
 * commit, so the journal may be purged only behind the oldest commit still named.
 *
 * All of it goes in slices, so that none holds the event loop. A list is written as slices, each with its length, and ends with
 * an empty one.
 */
import { atOnce } from '../../runtime/in-turns.ts'
import { batchKey } from './batch-name.ts'
import { ByteReader, ByteWriter, CorruptBytesError } from './bytes.ts'
import { decodeRecord, encodeRecord, positions } from './codec.ts'
import type { KeptAt } from './kept-places.ts'
import type { Position, SeenRecord } from './records.ts'
import { type Drop, emptyState, type FoldState, type OpenBatch } from './state.ts'

const VERSION = 3

/** Entries of a slice: positions, kept items, items of batches, drops. One batch with more goes alone. */
const SLICE = 2_500

/** A state as it was: what happens to the state afterwards does not change it. */
export interface FrozenState
  extends Pick<FoldState, 'horizon' | 'highWater' | 'epoch' | 'boot' | 'finished' | 'kept'> {
  readonly batches: readonly OpenBatch[]
  readonly drops: readonly Drop[]
  readonly released: readonly (readonly [key: string, deadline: number])[]
  readonly seen: SeenRecord
}

/** Takes a few ms at most: positions are shared with the state until it changes them. */
export function freezeState(state: FoldState): FrozenState {
  const { horizon, highWater, epoch, boot } = state
  return {
    horizon,
    highWater,
    epoch,
    boot,
    finished: state.finished.copy(),
    kept: state.kept.copy(),
    batches: Array.from(state.batches.values(), (batch) => ({ ...batch })),
    drops: [...state.drops.values()],
    released: [...state.released],
    seen: state.seen.record(),
  }
}

/** The slices joined are the snapshot. */
export function* encodeSnapshot(state: FrozenState): Generator<Buffer, void> {
  yield written((out) => {
    out.byte(VERSION)
    out.integer(state.horizon)
    out.integer(state.highWater?.seq ?? 0)
    out.text(state.highWater?.packId ?? '')
    out.integer(state.epoch)
    out.text(state.boot ?? '')
  })
  yield* list(state.finished.sorted(), positions.write)
  yield* list(state.kept.sorted(), encodeKept)
  yield* list(state.batches, encodeBatches, ({ seal }) => seal.positions.length)
  yield* list(state.drops, encodeDrops)
  yield* list(state.released, encodeReleased)
  // A record of its own kind, as if it had just been written.
  yield encodeRecord(state.seen)
}

function written(write: (out: ByteWriter) => void): Buffer {
  const out = new ByteWriter(16 * 1024)
  write(out)
  return out.view()
}

/** `encode` begins with the length of a slice. */
function* list<T>(
  entries: Iterable<T>,
  encode: (out: ByteWriter, slice: readonly T[]) => void,
  weightOf: (entry: T) => number = () => 1,
): Generator<Buffer, void> {
  let slice: T[] = []
  let weight = 0
  for (const entry of entries) {
    if (weight > 0 && weight + weightOf(entry) > SLICE) {
      yield written((out) => encode(out, slice))
      slice = []
      weight = 0
    }
    slice.push(entry)
    weight += weightOf(entry)
  }
  if (slice.length > 0) yield written((out) => encode(out, slice))
  yield written((out) => encode(out, []))
}

function encodeKept(out: ByteWriter, kept: readonly [Position, KeptAt][]): void {
  positions.write(
    out,
    kept.map(([position]) => position),
  )
  let previous = 0
  for (const [, { commit, ordinal }] of kept) {
    out.difference(commit - previous)
    out.integer(ordinal)
    previous = commit
  }
}

function encodeBatches(out: ByteWriter, batches: readonly OpenBatch[]): void {
  out.integer(batches.length)
  for (const batch of batches) {
    out.integer(batch.version)
    out.integer(batch.attempt)
    out.integer(batch.nextAt)
    out.bytes(encodeRecord(batch.seal))
  }
}

function encodeDrops(out: ByteWriter, drops: readonly Drop[]): void {
  out.integer(drops.length)
  for (const drop of drops) {
    out.integer(drop.seq)
    out.integer(drop.index)
    out.uuid(drop.itemId)
    out.uuid(drop.originalItemId)
    out.integer(drop.at)
  }
}

function encodeReleased(out: ByteWriter, released: FrozenState['released']): void {
  out.integer(released.length)
  for (const [key, deadline] of released) {
    out.text(key)
    out.integer(deadline)
  }
}

/** As `encodeSnapshot`, in this turn. */
export function writeSnapshot(state: FoldState): Buffer {
  const slices: Buffer[] = []
  atOnce(encodeSnapshot(freezeState(state)), (slice) => slices.push(slice))
  return Buffer.concat(slices)
}

/** Each yield ends a slice. @throws CorruptBytesError */
export function* decodeSnapshot(bytes: Uint8Array): Generator<undefined, FoldState> {
  const input = new ByteReader(bytes)
  const version = input.byte()
  if (version !== VERSION) throw new CorruptBytesError(`snapshot of version ${version}`)
  const state = emptyState()
  state.horizon = input.integer()
  const highWater = { seq: input.integer(), packId: input.text() }
  state.highWater = highWater.seq > 0 ? highWater : null
  state.epoch = input.integer()
  state.boot = input.text() || null
  for (const decode of [decodeFinished, decodeKept, decodeBatches, decodeDrops, decodeReleased])
    while (decode(input, state) > 0) yield
  const seen = decodeRecord(input)
  if (seen.type !== 'seen') throw new CorruptBytesError('snapshot without its seen packs')
  state.seen.apply(seen)
  return state
}

/** A slice, as the others below: answers how many entries it had. */
function decodeFinished(input: ByteReader, state: FoldState): number {
  const places = positions.read(input)
  for (const { seq, index } of places) state.finished.add(seq, index)
  return places.length
}

function decodeKept(input: ByteReader, state: FoldState): number {
  const places = positions.read(input)
  let commit = 0
  for (const { seq, index } of places) {
    commit += input.difference()
    state.kept.set(seq, index, { commit, ordinal: input.integer() })
  }
  return places.length
}

function decodeBatches(input: ByteReader, state: FoldState): number {
  const count = input.integer()
  for (let left = count; left > 0; left--) {
    const [version, attempt, nextAt] = [input.integer(), input.integer(), input.integer()]
    const seal = decodeRecord(input)
    if (seal.type !== 'seal') throw new CorruptBytesError('snapshot batch without its seal')
    const batch: OpenBatch = { groupId: seal.groupId, version, seal, attempt, nextAt }
    state.batches.set(batchKey(batch), batch)
    for (const { seq, index } of seal.positions) state.sealed.set(seq, index, batch)
  }
  return count
}

function decodeDrops(input: ByteReader, state: FoldState): number {
  const count = input.integer()
  for (let left = count; left > 0; left--) {
    const drop = {
      seq: input.integer(),
      index: input.integer(),
      itemId: input.uuid(),
      originalItemId: input.uuid(),
      at: input.integer(),
    }
    state.drops.set(drop.itemId, drop)
    state.newestDropAt = Math.max(state.newestDropAt, drop.at)
  }
  return count
}

function decodeReleased(input: ByteReader, state: FoldState): number {
  const count = input.integer()
  for (let left = count; left > 0; left--) state.released.set(input.text(), input.integer())
  return count
}

/** As `decodeSnapshot`, in this turn. @throws CorruptBytesError */
export function readSnapshot(bytes: Uint8Array): FoldState {
  return atOnce(decodeSnapshot(bytes))
}
