/**
 * Carrying live items into the journal, payload and all, sorted by group (docs/architecture/protocol.md,
 * "Housekeeping").
 */

import { keptPlaces } from '../held/kept.ts'
import type { LiveItem, LiveItems } from '../held/live.ts'
import { CachedMessage, type PayloadCache } from '../held/payload-cache.ts'
import type { Journal } from '../journal/journal.ts'

/** Encoded items in one keep record, bytes; one larger item goes alone. */
const KEEP_BYTES = 256 * 1024
/**
 * Of the journal's `max_bytes`, for one keep record. A record is purged only once all of its items were carried forward, so
 * one that fills half of a small journal could never go.
 */
const KEEP_SHARE = 1 / 64
/** Encoded items that are sorted at once, bytes: they stand in memory meanwhile. */
const SLAB_BYTES = 32 * 1024 * 1024

export interface KeepInto {
  readonly payloads: PayloadCache
  readonly journal: Journal
  readonly live: LiveItems
  /** Of the journal's log; 0: no limit. */
  readonly maxBytes: number
  /** What the journal may use with the next snapshot, bytes. Results are committed meanwhile, and each commit has a header. */
  readonly mayUse: number
  /** By group; else they go as given. */
  readonly sorted: boolean
  readonly stopped: () => boolean
}

/** Items of the inbox below `until`. */
export function laggingItems(inInbox: Iterable<LiveItem>, until: number): LiveItem[] {
  const items: LiveItem[] = []
  for (const item of inInbox) if (item.seq < until) items.push(item)
  return items
}

/** The first of them that fit `space` bytes. */
export function fitting(items: readonly LiveItem[], space: number): LiveItem[] {
  let count = 0
  for (let left = space; count < items.length; count++) {
    left -= items[count]!.size
    if (left < 0) break
  }
  return items.slice(0, count)
}

/**
 * Carries them, given in the order of their messages: one record after the other, so that seals pass between them. A
 * group's items stand far apart in the inbox and together in a keep, so they are copied first and sorted then: in
 * slabs, for each message is read about once. Resolves when all are committed, when the journal uses what it may, or stopped.
 */
export async function carry(items: readonly LiveItem[], into: KeepInto): Promise<void> {
  for (const slab of slices(items, SLAB_BYTES)) {
    if (hasToEnd(into)) return
    await carrySlab(slab, into)
  }
}

async function carrySlab(items: readonly LiveItem[], into: KeepInto): Promise<void> {
  const copies = new Map<LiveItem, Buffer>()
  const most = into.maxBytes > 0 ? Math.min(KEEP_BYTES, into.maxBytes * KEEP_SHARE) : KEEP_BYTES
  for (const part of slices(items, KEEP_BYTES)) await copyInto(copies, part, into)
  const copied = [...copies.keys()]
  for (const chunk of slices(into.sorted ? copied.sort(byGroup) : copied, most)) {
    if (hasToEnd(into)) return
    await carryChunk(chunk, copies, into)
  }
}

function hasToEnd({ stopped, journal, mayUse }: KeepInto): boolean {
  return stopped() || journal.used > mayUse
}

async function copyInto(
  copies: Map<LiveItem, Buffer>,
  part: readonly LiveItem[],
  { payloads, live }: KeepInto,
): Promise<void> {
  const items = part.filter((item) => live.get(item) === item)
  await payloads.with(items, (data) => {
    for (const item of items) {
      copies.set(item, Buffer.from(data(item.message).subarray(item.offset, item.offset + item.size)))
    }
  })
}

function byGroup(a: LiveItem, b: LiveItem): number {
  return a.group.id < b.group.id ? -1 : a.group.id > b.group.id ? 1 : a.seq - b.seq || a.index - b.index
}

/** In order, of at most so many encoded bytes; one larger item goes alone. */
function* slices(items: readonly LiveItem[], most: number): Generator<LiveItem[]> {
  let slice: LiveItem[] = []
  let bytes = 0
  for (const item of items) {
    if (slice.length > 0 && bytes + item.size > most) {
      yield slice
      slice = []
      bytes = 0
    }
    slice.push(item)
    bytes += item.size
  }
  if (slice.length > 0) yield slice
}

async function carryChunk(
  chunk: readonly LiveItem[],
  copies: ReadonlyMap<LiveItem, Buffer>,
  { journal, live }: KeepInto,
): Promise<void> {
  const items = chunk.filter((item) => live.get(item) === item)
  if (items.length === 0) return
  const kept = items.map((item) => ({
    position: { seq: item.seq, index: item.index },
    at: item.at,
    item: copies.get(item)!,
  }))
  await journal.commit({ type: 'keep', items: kept }, (seq, _applied, bytes) => {
    moveTo(new CachedMessage('journal', seq), bytes, items, live)
  })
}

/** Its bytes are not held in memory: what is carried has waited for long, and is read again when it is due. */
function moveTo(message: CachedMessage, bytes: Buffer, items: readonly LiveItem[], live: LiveItems): void {
  keptPlaces(bytes).forEach(({ offset }, ordinal) => {
    const item = items[ordinal]!
    if (live.get(item) === item) live.move(item, message, offset)
  })
}
