/**
 * A journal as a copy that does not depend on its sequences: what the fold holds, so that it can be written anew
 * above every sequence that was ever used (docs/architecture/repair.md, "The journal"). Payloads pass through memory
 * one commit at a time.
 *
 * Layout: messages with one commit's records each (kept items, then settled batches that are not counted), messages of
 * a snapshot in which a kept item is named by the number of its message, and an end that counts both.
 */

import { PART_BYTES } from '../archive/snapshot-archive.ts'
import type { Log } from '../broker.ts'
import { decodeCommit, encodeRecord } from '../journal/codec.ts'
import { KeptPlaces } from '../journal/kept-places.ts'
import { type KeptItem, keptItems, type SettledRecord } from '../journal/records.ts'
import { slicesOf } from '../journal/slices.ts'
import { readSnapshot, writeSnapshot } from '../journal/snapshot.ts'
import type { FoldState } from '../journal/state.ts'
import type { JournalCopies, JournalCopy } from './ports.ts'

/** Settled batches in one commit. */
const SETTLED_AT_ONCE = 1_000

/** What the last message of a copy counts. */
interface End {
  readonly commits: number
  readonly parts: number
}

/** A copy that was finished: its last message counts all others. */
export interface CompleteCopy extends JournalCopy {
  /** Messages at its beginning, each with the records of a commit. */
  readonly commits: number
}

/** The messages of a copy. `uncounted`: settled batches that Postgres has not counted, in order. Rejects when a kept item is gone. */
export async function* copyJournal(
  journal: Log,
  state: FoldState,
  uncounted: readonly SettledRecord[],
): AsyncGenerator<Buffer> {
  const places = new KeptPlaces()
  let commits = 0
  for (const commit of state.kept.commits()) {
    const items = await keptIn(journal, commit, state)
    for (const [ordinal, { position }] of items.entries())
      places.set(position.seq, position.index, { commit: commits, ordinal })
    commits++
    yield encodeRecord({ type: 'keep', items })
  }
  if (places.size < state.kept.size)
    throw new Error(`the journal holds ${places.size} of ${state.kept.size} kept items`)
  for (const records of slicesOf(uncounted, SETTLED_AT_ONCE)) {
    commits++
    yield Buffer.concat(records.map(encodeRecord))
  }
  const snapshot = writeSnapshot({ ...state, kept: places })
  for (let at = 0; at < snapshot.length; at += PART_BYTES) yield snapshot.subarray(at, at + PART_BYTES)
  const end: End = { commits, parts: Math.ceil(snapshot.length / PART_BYTES) }
  yield Buffer.from(JSON.stringify(end))
}

/** The items of a commit that the state names there. */
async function keptIn(journal: Log, commit: number, { kept }: FoldState): Promise<KeptItem[]> {
  const message = await journal.get(commit)
  if (!message) throw new Error(`journal commit ${commit} holds kept items and is gone`)
  const isNamed = ({ position: { seq, index } }: KeptItem, ordinal: number) => {
    const named = kept.get(seq, index)
    return named?.commit === commit && named.ordinal === ordinal
  }
  return keptItems(decodeCommit(message.data)).filter(isNamed)
}

/** undefined: there is none that was finished. */
export async function completeCopy(copies: JournalCopies, shard: number): Promise<CompleteCopy | undefined> {
  const copy = await copies.load(shard)
  if (!copy || copy.length === 0) return undefined
  const end = endOf(await allOf(copy, copy.length - 1, copy.length))
  if (end === undefined || end.commits + end.parts !== copy.length - 1) return undefined
  return { ...copy, commits: end.commits }
}

/** The state of the fold that was copied; a kept item is named by the number of its message. */
export async function copiedState(copy: CompleteCopy): Promise<FoldState> {
  return readSnapshot(await allOf(copy, copy.commits, copy.length - 1))
}

/** Kept places as they are when the first message of the copy is the commit `first`. */
export function movedPlaces(kept: KeptPlaces, first: number): KeptPlaces {
  const places = new KeptPlaces()
  for (const [{ seq, index }, { commit, ordinal }] of kept.sorted())
    places.set(seq, index, { commit: first + commit, ordinal })
  return places
}

function endOf(message: Buffer): End | undefined {
  try {
    const end = JSON.parse(message.toString()) as End
    return Number.isSafeInteger(end.commits) && Number.isSafeInteger(end.parts) ? end : undefined
  } catch {
    return undefined
  }
}

async function allOf(copy: JournalCopy, from: number, to: number): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(copy.read(from, to)))
}
