/**
 * Carrying live items into the journal, payload and all, by group (docs/architecture/protocol.md,
 * "Housekeeping").
 */

import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
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
/** Encoded items that are grouped together, bytes: they stand in memory meanwhile. */
const SLAB_BYTES = 32 * 1024 * 1024

export interface KeepInto {
  readonly clock: Clock
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

/** Items that are carried when it is their turn. */
export interface Carried {
  /** In the order of their messages. It is walked while they are carried. */
  readonly items: Iterable<LiveItem>
  /** Whether it is the turn of this one; where it is not, they end. */
  readonly has: (item: LiveItem) => boolean
  /** Encoded bytes at most. */
  readonly space: number
}

/** What is carried together. */
class Slab {
  readonly copies = new Map<LiveItem, Buffer>()
  /** By group, or all in one list. */
  readonly #lists = new Map<string, LiveItem[]>()
  bytes = 0

  add(list: string, item: LiveItem, copy: Buffer): void {
    this.copies.set(item, copy)
    this.bytes += copy.length
    const items = this.#lists.get(list)
    if (items) items.push(item)
    else this.#lists.set(list, [item])
  }

  /** List by list. */
  *items(): Generator<LiveItem> {
    for (const items of this.#lists.values()) yield* items
  }
}

/**
 * Carries them: one record after the other, so that seals pass between them. A group's items stand far apart in the inbox
 * and together in a keep, so they are copied first: in slabs, for each message is read about once. Resolves when all are
 * committed, when the journal uses what it may, or stopped.
 */
export async function carry(carried: Carried, into: KeepInto): Promise<void> {
  let slab = new Slab()
  for (const part of slices(fitting(carried), KEEP_BYTES)) {
    if (hasToEnd(into)) return
    await copyInto(slab, part, into)
    // What was in memory was copied in this turn.
    await sleep(into.clock, 0)
    if (slab.bytes < SLAB_BYTES) continue
    await carrySlab(slab, into)
    slab = new Slab()
  }
  await carrySlab(slab, into)
}

function* fitting({ items, has, space }: Carried): Generator<LiveItem> {
  let left = space
  for (const item of items) {
    left -= item.size
    if (left < 0 || !has(item)) return
    yield item
  }
}

async function carrySlab(slab: Slab, into: KeepInto): Promise<void> {
  const most = into.maxBytes > 0 ? Math.min(KEEP_BYTES, into.maxBytes * KEEP_SHARE) : KEEP_BYTES
  for (const chunk of slices(slab.items(), most)) {
    if (hasToEnd(into)) return
    await carryChunk(chunk, slab.copies, into)
  }
}

function hasToEnd({ stopped, journal, mayUse }: KeepInto): boolean {
  return stopped() || journal.used > mayUse
}

async function copyInto(
  slab: Slab,
  part: readonly LiveItem[],
  { payloads, live, sorted }: KeepInto,
): Promise<void> {
  const items = part.filter((item) => live.get(item) === item)
  await payloads.with(items, (data) => {
    for (const item of items) {
      const copy = Buffer.from(data(item.message).subarray(item.offset, item.offset + item.size))
      slab.add(sorted ? item.group.id : '', item, copy)
    }
  })
}

/** In order, of at most so many encoded bytes; one larger item goes alone. */
function* slices(items: Iterable<LiveItem>, most: number): Generator<LiveItem[]> {
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
