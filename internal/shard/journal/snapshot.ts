/**
 * A shard's state as bytes: the parts of a snapshot joined. Without payloads: a kept item is named by its
 * commit, so the journal may be purged only behind the oldest commit still named.
 */
import { batchKey } from './batch-name.ts'
import { ByteReader, ByteWriter, CorruptBytesError } from './bytes.ts'
import { decodePositions, decodeRecord, encodePositions, encodeRecord } from './codec.ts'
import type { Position } from './records.ts'
import { SeenPacks } from './seen-packs.ts'
import { emptyState, type FoldState, type OpenBatch } from './state.ts'

/** Version 1 has no seen packs; it is read as if none were known. */
const VERSION = 2

/** Parts of a snapshot are at most this long, so that seals pass between them. */
export const SNAPSHOT_PART_BYTES = 256 * 1024

export function writeSnapshot(state: FoldState): Buffer {
  const out = new ByteWriter(64 * 1024)
  out.byte(VERSION)
  out.integer(state.horizon)
  out.integer(state.highWater?.seq ?? 0)
  out.text(state.highWater?.packId ?? '')
  out.integer(state.epoch)
  out.text(state.boot ?? '')
  encodePositions(out, [...state.finished.sorted()])
  writeKept(out, state)
  writeBatches(out, state)
  writeDrops(out, state)
  out.integer(state.released.size)
  for (const [key, deadline] of state.released) {
    out.text(key)
    out.integer(deadline)
  }
  // A record of its own kind, as if it had just been written.
  const writers = [...state.seen.entries()].map(([writer, number]) => ({ writer, number }))
  out.bytes(encodeRecord({ type: 'seen', upTo: state.seen.upTo, writers }))
  return Buffer.from(out.view())
}

function writeKept(out: ByteWriter, state: FoldState): void {
  const kept = [...state.kept.sorted()]
  encodePositions(
    out,
    kept.map(([position]) => position),
  )
  for (const [, { commit, ordinal }] of kept) {
    out.integer(commit)
    out.integer(ordinal)
  }
}

function writeBatches(out: ByteWriter, state: FoldState): void {
  out.integer(state.batches.size)
  for (const batch of state.batches.values()) {
    out.integer(batch.version)
    out.integer(batch.attempt)
    out.integer(batch.nextAt)
    out.bytes(encodeRecord(batch.seal))
  }
}

function writeDrops(out: ByteWriter, state: FoldState): void {
  out.integer(state.drops.size)
  for (const drop of state.drops.values()) {
    out.integer(drop.seq)
    out.integer(drop.index)
    out.uuid(drop.itemId)
    out.uuid(drop.originalItemId)
    out.integer(drop.at)
  }
}

/** @throws CorruptBytesError */
export function readSnapshot(bytes: Uint8Array): FoldState {
  const input = new ByteReader(bytes)
  const version = input.byte()
  if (version !== 1 && version !== VERSION) throw new CorruptBytesError(`snapshot of version ${version}`)
  const state = emptyState()
  state.horizon = input.integer()
  const highWater = { seq: input.integer(), packId: input.text() }
  state.highWater = highWater.seq > 0 ? highWater : null
  state.epoch = input.integer()
  state.boot = input.text() || null
  for (const { seq, index } of decodePositions(input)) state.finished.add(seq, index)
  readKept(input, state, decodePositions(input))
  readBatches(input, state)
  readDrops(input, state)
  for (let left = input.integer(); left > 0; left--) state.released.set(input.text(), input.integer())
  if (version === VERSION) readSeen(input, state)
  return state
}

function readSeen(input: ByteReader, state: FoldState): void {
  const seen = decodeRecord(input)
  if (seen.type !== 'seen') throw new CorruptBytesError('snapshot without its seen packs')
  state.seen = new SeenPacks(
    seen.upTo,
    seen.writers.map(({ writer, number }) => [writer, number]),
  )
}

function readKept(input: ByteReader, state: FoldState, positions: Position[]): void {
  for (const { seq, index } of positions) {
    state.kept.set(seq, index, { commit: input.integer(), ordinal: input.integer() })
  }
}

function readBatches(input: ByteReader, state: FoldState): void {
  for (let left = input.integer(); left > 0; left--) {
    const [version, attempt, nextAt] = [input.integer(), input.integer(), input.integer()]
    const seal = decodeRecord(input)
    if (seal.type !== 'seal') throw new CorruptBytesError('snapshot batch without its seal')
    const batch: OpenBatch = { groupId: seal.groupId, version, seal, attempt, nextAt }
    state.batches.set(batchKey(batch), batch)
    for (const { seq, index } of seal.positions) state.sealed.set(seq, index, batch)
  }
}

function readDrops(input: ByteReader, state: FoldState): void {
  for (let left = input.integer(); left > 0; left--) {
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
}
