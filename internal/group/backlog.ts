/**
 * The unsealed items of one group, in log order and in segments (docs/architecture/protocol.md, "Segments"). Adding and
 * taking are O(1) an item however many wait: taken slots are cleared and passed over, never shifted, and a
 * segment is a counted run, so nothing is scanned.
 *
 * Hundreds of thousands of these live at once and most hold one item: two small objects and its slot.
 */
import type { GroupItem } from './model.ts'

/** A full segment with older items than the one that takes new items. Never empty. */
interface Run {
  segment: number
  items: number
  bytes: number
  next: Run | undefined
}

/** What leaves as one batch: at least one item, all of one segment. */
export interface Slice<I> {
  readonly items: readonly I[]
  readonly bytes: number
  readonly segment: number
}

export class Backlog<I extends GroupItem> {
  /** The items stand at `head` and behind; before it are cleared slots only. */
  #slots: (I | undefined)[] = []
  #head = 0
  /** The tail: the segment that takes new items, unless it is full. */
  #segment = 0
  #tailItems = 0
  #tailBytes = 0
  /** The next item opens another segment. Stays true while items leave: a full segment never reopens. */
  #tailFull = false
  /** The segments before the tail, oldest first, numbers rising; both undefined when there are none. */
  #oldest: Run | undefined = undefined
  #newest: Run | undefined = undefined

  get size(): number {
    return this.#slots.length - this.#head
  }

  /** Items, bytes and fullness of the front segment: the only one that the next batch can come from. */
  get items(): number {
    return this.#oldest ? this.#oldest.items : this.#tailItems
  }

  get bytes(): number {
    return this.#oldest ? this.#oldest.bytes : this.#tailBytes
  }

  get full(): boolean {
    return this.#oldest !== undefined || this.#tailFull
  }

  /** Time of the oldest item, ms. Only while size > 0. */
  get firstAt(): number {
    return this.#slots[this.#head]!.at
  }

  /** Time of the youngest item, ms; not before the oldest one's, though a broker's clock may step back. */
  get lastAt(): number {
    return Math.max(this.firstAt, this.#slots[this.#slots.length - 1]!.at)
  }

  push(item: I): void {
    if (this.#tailFull) this.#openSegment()
    if (this.size === 0) this.#replaceSlots([item])
    else this.#slots.push(item)
    this.#tailItems += 1
    this.#tailBytes += item.bytes
  }

  /** Closes the tail to new items when it has reached its limits (`overflow` of the buffer). */
  closeIfFull(limits: { readonly maxGroupItems: number; readonly maxGroupBytes: number }): void {
    if (this.#tailItems === 0) return
    if (this.#tailItems >= limits.maxGroupItems || this.#tailBytes >= limits.maxGroupBytes)
      this.#tailFull = true
  }

  /** No item came after `now`, ms. O(size), for clocks are rarely set back. */
  setBack(now: number): void {
    for (let index = this.#head; index < this.#slots.length; index += 1) {
      const item = this.#slots[index]!
      item.at = Math.min(item.at, now)
    }
  }

  /** Takes a prefix of the front segment: at most maxItems, at most maxBytes unless the first alone is more. */
  take(limits: { readonly maxItems: number; readonly maxBytes: number }): Slice<I> {
    const segment = this.#oldest ? this.#oldest.segment : this.#segment
    const stop = this.#head + Math.min(this.items, limits.maxItems)
    let end = this.#head + 1
    let bytes = this.#slots[this.#head]!.bytes
    for (; end < stop && bytes + this.#slots[end]!.bytes <= limits.maxBytes; end += 1)
      bytes += this.#slots[end]!.bytes
    const items = this.#slots.slice(this.#head, end) as I[]
    this.#leaveFront(items.length, bytes)
    this.#clearUpTo(end)
    return { items, bytes, segment }
  }

  /** Puts a slice back to the front: the last one taken, and at most once. O(size), for seals rarely fail. */
  giveBack(slice: Slice<I>): void {
    this.#replaceSlots([...slice.items, ...this.#slots.slice(this.#head)])
    const count = slice.items.length
    if (this.#oldest?.segment === slice.segment) {
      this.#oldest.items += count
      this.#oldest.bytes += slice.bytes
    } else if (!this.#oldest && this.#segment === slice.segment) {
      this.#tailItems += count
      this.#tailBytes += slice.bytes
    } else {
      this.#oldest = { segment: slice.segment, items: count, bytes: slice.bytes, next: this.#oldest }
      this.#newest ??= this.#oldest
    }
  }

  /** Removes one item from anywhere; false when it is not here. O(size), for drops are rare. */
  drop(item: I): boolean {
    const index = this.#slots.indexOf(item, this.#head)
    if (index < 0) return false
    this.#slots.splice(index, 1)
    let offset = index - this.#head
    let before: Run | undefined
    let run = this.#oldest
    for (; run && offset >= run.items; run = run.next) {
      offset -= run.items
      before = run
    }
    this.#leave(run, before, 1, item.bytes)
    return true
  }

  /** Takes everything; the segment in use stays. */
  drain(): I[] {
    const items = this.#slots.slice(this.#head) as I[]
    this.#replaceSlots([])
    this.#tailItems = 0
    this.#tailBytes = 0
    this.#oldest = undefined
    this.#newest = undefined
    return items
  }

  /** The group is empty: back to segment 0. */
  restart(): void {
    this.#segment = 0
    this.#tailFull = false
  }

  /** Items here follow batches of `segment`: theirs is at least that one. */
  startAt(segment: number): void {
    const lift = segment - (this.#oldest ? this.#oldest.segment : this.#segment)
    if (lift <= 0) return
    this.#segment += lift
    for (let run = this.#oldest; run; run = run.next) run.segment += lift
  }

  #openSegment(): void {
    if (this.#tailItems > 0) {
      const run = { segment: this.#segment, items: this.#tailItems, bytes: this.#tailBytes, next: undefined }
      if (this.#newest) this.#newest.next = run
      else this.#oldest = run
      this.#newest = run
    }
    this.#segment += 1
    this.#tailItems = 0
    this.#tailBytes = 0
    this.#tailFull = false
  }

  #leaveFront(items: number, bytes: number): void {
    this.#leave(this.#oldest, undefined, items, bytes)
  }

  /** `run` undefined: they leave the tail. */
  #leave(run: Run | undefined, before: Run | undefined, items: number, bytes: number): void {
    if (!run) {
      this.#tailItems -= items
      this.#tailBytes -= bytes
      return
    }
    run.items -= items
    run.bytes -= bytes
    if (run.items > 0) return
    if (before) before.next = run.next
    else this.#oldest = run.next
    if (this.#newest === run) this.#newest = before
  }

  /** Copies the rest when at least half of the slots are spent: amortised O(1) an item. */
  #clearUpTo(end: number): void {
    if (2 * end >= this.#slots.length) {
      this.#replaceSlots(this.#slots.slice(end))
      return
    }
    this.#slots.fill(undefined, this.#head, end)
    this.#head = end
  }

  #replaceSlots(slots: (I | undefined)[]): void {
    this.#slots = slots
    this.#head = 0
  }
}
