/**
 * Keeps live items of the inbox in the journal, payload and all, group by group (docs/architecture/protocol.md,
 * "Housekeeping"): what lags holds the horizon.
 */

import { sleep } from '../../runtime/sleep.ts'
import type { LiveItem, LiveItems } from '../held/live.ts'
import { CachedMessage } from '../held/payload-cache.ts'
import { decodeCommit } from '../journal/codec.ts'
import type { Committed } from '../journal/journal.ts'
import { type KeepRecord, keptItems } from '../journal/records.ts'
import { slicesOf } from '../journal/slices.ts'
import type { InboxKeeper } from './inbox.ts'
import { nearlyFull } from './limits.ts'
import type { HousekeepingOwner } from './owner.ts'

/** Encoded items in one keep record, bytes; one larger item goes alone. */
const KEEP_BYTES = 256 * 1024
/** Of the journal's `max_bytes`, for one keep record: the share for carrying forward holds some of them. */
const KEEP_SHARE = 1 / 64
/** Of the journal's `max_bytes`, for all kept items: the rest is for seals, results and what is carried forward. */
const KEPT_SHARE = 0.5
/** Encoded items that are grouped together, bytes: they stand in memory meanwhile. */
const SLAB_BYTES = 32 * 1024 * 1024
/** The newest quarter is left: it is likely to be over soon by itself. */
const KEPT_OF_READ = 0.75
/**
 * In a crowded log a keep is due as soon as what is over is this part of what is live: else one of which more than half is
 * held would stay full, whatever passes through the rest.
 */
export const CROWDED_RATIO = 0.25

export interface KeepingOptions extends HousekeepingOwner {
  readonly inbox: InboxKeeper
}

/** Bytes of encoded items in one keep record. `maxBytes`: of the journal's log; not above 0: no limit. */
export function keepBytesOf(maxBytes: number): number {
  return maxBytes > 0 ? Math.min(KEEP_BYTES, maxBytes * KEEP_SHARE) : KEEP_BYTES
}

export class Keeping {
  readonly #options: KeepingOptions

  constructor(options: KeepingOptions) {
    this.#options = options
  }

  /** Keeps what lags, where that is due, and raises the horizon. */
  async step(): Promise<void> {
    const { inbox, live, replay, journalLog, journal } = this.#options
    if (!(await this.#isDue())) return
    const { maxBytes } = await journalLog.state()
    const limit = maxBytes > 0 ? maxBytes * KEPT_SHARE - live.keptBytes : Number.POSITIVE_INFINITY
    const space = Math.min(limit, journal.left('commits'))
    const below = inbox.below(KEPT_OF_READ) ?? replay.cursor
    const until = below > (live.lowestInboxSeq ?? below) ? below : replay.cursor
    await this.#keep(lagging(live.inInbox(), until, space), keepBytesOf(maxBytes))
    await inbox.advanceHorizon()
  }

  async #isDue(): Promise<boolean> {
    const { inbox, live, limits, inboxLog } = this.#options
    const over = inbox.bytesAbove - live.inboxBytes
    if (over > limits.keepBytes && over > limits.keepRatio * live.inboxBytes) return true
    return over > CROWDED_RATIO * live.inboxBytes && (await nearlyFull(inboxLog, limits))
  }

  /**
   * In the order of their messages: one record after the other, so that seals pass between them. A group's items stand far apart in
   * the inbox and together in a keep, so they are copied first: in slabs, for each message is read about once.
   */
  async #keep(items: Iterable<LiveItem>, most: number): Promise<void> {
    const { stopped, clock } = this.#options
    let slab = new Slab()
    for (const part of slicesOf(items, KEEP_BYTES, ({ size }) => size)) {
      if (stopped()) return
      await this.#copyInto(slab, part)
      // What was in memory was copied in this turn.
      await sleep(clock, 0)
      if (slab.bytes < SLAB_BYTES) continue
      await this.#keepSlab(slab, most)
      slab = new Slab()
    }
    await this.#keepSlab(slab, most)
  }

  async #keepSlab(slab: Slab, most: number): Promise<void> {
    const { stopped, journal, live } = this.#options
    for (const chunk of slicesOf(slab.items(), most, ({ size }) => size)) {
      if (stopped() || journal.isFull) return
      await keepLive(chunk, slab.copies, live, (record, kept) => journal.commit(record, kept))
    }
  }

  async #copyInto(slab: Slab, part: readonly LiveItem[]): Promise<void> {
    const { live, payloads } = this.#options
    const items = part.filter((item) => live.get(item) === item)
    await payloads.with(items, (data) => {
      for (const item of items)
        slab.add(item, Buffer.from(data(item.message).subarray(item.offset, item.offset + item.size)))
    })
  }
}

/** What is kept together, group by group. */
class Slab {
  readonly copies = new Map<LiveItem, Buffer>()
  readonly #groups = new Map<string, LiveItem[]>()
  bytes = 0

  add(item: LiveItem, copy: Buffer): void {
    this.copies.set(item, copy)
    this.bytes += copy.length
    const items = this.#groups.get(item.group.id)
    if (items) items.push(item)
    else this.#groups.set(item.group.id, [item])
  }

  *items(): Generator<LiveItem> {
    for (const items of this.#groups.values()) yield* items
  }
}

/** Items of the inbox below `until`, the first that fit `space` bytes. */
function* lagging(inInbox: Iterable<LiveItem>, until: number, space: number): Generator<LiveItem> {
  let left = space
  for (const item of inInbox) {
    left -= item.size
    if (item.seq >= until || left < 0) return
    yield item
  }
}

/** Those that are live still get one keep record, and stand in its commit then. */
export async function keepLive(
  chunk: readonly LiveItem[],
  copies: ReadonlyMap<LiveItem, Buffer>,
  live: LiveItems,
  write: (record: KeepRecord, committed: Committed) => Promise<number>,
): Promise<void> {
  const items = chunk.filter((item) => live.get(item) === item)
  if (items.length > 0) await write(keepOf(items, copies), (seq, _, data) => moveTo(seq, data, items, live))
}

function keepOf(items: readonly LiveItem[], copies: ReadonlyMap<LiveItem, Buffer>): KeepRecord {
  return {
    type: 'keep',
    items: items.map((item) => ({
      position: { seq: item.seq, index: item.index },
      at: item.at,
      item: copies.get(item)!,
    })),
  }
}

/** Its bytes are not held in memory: what is kept has waited for long, and is read again when it is due. */
function moveTo(commit: number, data: Buffer, items: readonly LiveItem[], live: LiveItems): void {
  const message = new CachedMessage('journal', commit)
  keptItems(decodeCommit(data)).forEach(({ item: bytes }, ordinal) => {
    const item = items[ordinal]!
    if (live.get(item) === item) live.move(item, message, bytes.byteOffset - data.byteOffset)
  })
}
