/**
 * A journal as a copy that does not depend on its sequences: what the fold holds, so that it can be written anew
 * above every sequence that was ever used (docs/architecture/repair.md, "The journal").
 *
 * Layout: messages with one commit's records each (kept items, then settled batches that are not counted), messages of
 * a snapshot in which a kept item is named by the number of its message, and an end that counts both.
 */

import { readItem } from '../../domain/pack.ts'
import { PART_BYTES } from '../archive/snapshot-archive.ts'
import type { KeptEntry } from '../held/kept.ts'
import { ByteReader } from '../journal/bytes.ts'
import { decodeRecord, encodeRecord } from '../journal/codec.ts'
import { KeptPlaces } from '../journal/kept-places.ts'
import type { JournalRecord, KeptItem, SettledRecord } from '../journal/records.ts'
import { readSnapshot, writeSnapshot } from '../journal/snapshot.ts'
import type { FoldState } from '../journal/state.ts'

/** Encoded items in one keep record, bytes; one larger item goes alone. */
const KEEP_BYTES = 256 * 1024
/** Settled batches in one commit. */
const SETTLED_AT_ONCE = 1_000

export interface JournalContent {
  readonly state: FoldState
  /** All kept items of the state. */
  readonly kept: readonly KeptEntry[]
  /** Settled batches that Postgres has not counted, in order. */
  readonly uncounted: readonly SettledRecord[]
}

interface End {
  readonly commits: number
  readonly parts: number
}

export function copyJournal({ state, kept, uncounted }: JournalContent): Buffer[] {
  const chunks = chunksOf(kept)
  const places = new KeptPlaces()
  for (const [commit, chunk] of chunks.entries()) {
    for (const [ordinal, { position }] of chunk.entries())
      places.set(position.seq, position.index, { commit, ordinal })
  }
  const keeps = chunks.map((items) => encodeRecord({ type: 'keep', items }))
  const settled = inPieces(uncounted, SETTLED_AT_ONCE).map((some) => Buffer.concat(some.map(encodeRecord)))
  const parts = partsOf(writeSnapshot({ ...state, kept: places }))
  const end: End = { commits: keeps.length + settled.length, parts: parts.length }
  return [...keeps, ...settled, ...parts, Buffer.from(JSON.stringify(end))]
}

/** Whether a copy was finished: its last message counts all others. */
export function isComplete(messages: readonly Uint8Array[]): boolean {
  const end = endOf(messages)
  return end !== undefined && end.commits + end.parts === messages.length - 1
}

/** The claim under which a complete copy was made. */
export function epochOf(messages: readonly Uint8Array[]): number {
  return stateOf(messages).epoch
}

function stateOf(messages: readonly Uint8Array[]): FoldState {
  const end = endOf(messages)
  if (end === undefined || !isComplete(messages)) throw new Error('the copy of the journal is not complete')
  return readSnapshot(Buffer.concat(messages.slice(end.commits, end.commits + end.parts)))
}

/**
 * What the new journal is written from: the records of its commits, a list a commit, which follow the claim of `boot` at the sequence
 * `epoch` without a gap; and the state behind them, as a snapshot has it.
 */
export function journalOf(
  messages: readonly Uint8Array[],
  { epoch, boot }: { epoch: number; boot: string },
): { commits: JournalRecord[][]; state: FoldState } {
  const state = stateOf(messages)
  const commits = messages.slice(0, endOf(messages)!.commits).map(recordsOf)
  const kept = moved(state.kept, epoch + 1)
  return { commits, state: { ...state, epoch, boot, kept } }
}

function endOf(messages: readonly Uint8Array[]): End | undefined {
  try {
    const end = JSON.parse(Buffer.from(messages.at(-1) ?? []).toString()) as End
    return Number.isSafeInteger(end.commits) && Number.isSafeInteger(end.parts) ? end : undefined
  } catch {
    return undefined
  }
}

function recordsOf(message: Uint8Array): JournalRecord[] {
  const input = new ByteReader(message)
  const records: JournalRecord[] = []
  while (!input.done) records.push(decodeRecord(input))
  return records
}

function moved(kept: KeptPlaces, first: number): KeptPlaces {
  const places = new KeptPlaces()
  for (const [{ seq, index }, { commit, ordinal }] of kept.sorted()) {
    places.set(seq, index, { commit: first + commit, ordinal })
  }
  return places
}

function chunksOf(kept: readonly KeptEntry[]): KeptItem[][] {
  const chunks: KeptItem[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const { position, at, data, offset } of kept) {
    const item = data.subarray(offset, readItem(data, offset).end)
    if (bytes + item.length > KEEP_BYTES) {
      chunks.push([])
      bytes = 0
    }
    chunks.at(-1)!.push({ position, at, item })
    bytes += item.length
  }
  return chunks
}

function partsOf(snapshot: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < snapshot.length; at += PART_BYTES) {
    parts.push(snapshot.subarray(at, at + PART_BYTES))
  }
  return parts
}

function inPieces<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, piece) =>
    all.slice(piece * size, (piece + 1) * size),
  )
}
