/**
 * Tells open groups that what they follow is another now, in slices of one queue. Hundreds of thousands told at once, or
 * in many queues, would keep the node's other shards and its lease waiting.
 *
 * Invariant: a group that is open at a change is told after it, and then follows what holds at that moment. So a change
 * that comes while groups are told of an earlier one needs no more than one further round.
 */

import type { Clock } from '../../runtime/clock.ts'
import type { BufferState } from './buffer-state.ts'
import type { OpenGroup } from './live.ts'

/** Groups that are told before others get the event loop: some milliseconds. */
const TOLD_AT_ONCE = 500
/** Between the beginnings of two rounds a buffer rests for 1 ms a group, and for so many at most. */
const MOST_REST_MS = 1_000

/** A buffer with its open groups. */
export interface OpenBuffer {
  readonly state: BufferState
  readonly groups: Set<OpenGroup>
  /** No round begins before, monotonic ms. */
  restsUntil: number
}

export class Telling {
  readonly #clock: Clock
  readonly #tell: (group: OpenGroup) => void
  /** Who is still to be told, by whose change it was. The first one has the next slice. */
  readonly #left = new Map<object, Iterator<OpenGroup>>()
  /** Buffers with a round to come. */
  readonly #later = new Set<OpenBuffer>()
  #closed = false

  constructor(clock: Clock, tell: (group: OpenGroup) => void) {
    this.#clock = clock
    this.#tell = tell
  }

  /** Tells these, in place of what `owner` had told before and is not over. */
  each(owner: object, groups: Iterator<OpenGroup>): void {
    const isIdle = this.#left.size === 0
    this.#left.set(owner, groups)
    if (isIdle) this.#slice()
  }

  /** Of another policy of this buffer: now, or a moment after the last time. */
  groupsOf(buffer: OpenBuffer): void {
    if (this.#closed || this.#later.has(buffer)) return
    const now = this.#clock.monotonic()
    const wait = this.#left.has(buffer) ? MOST_REST_MS : buffer.restsUntil - now
    if (wait > 0) {
      this.#after(wait, buffer)
      return
    }
    buffer.restsUntil = now + Math.min(MOST_REST_MS, buffer.groups.size)
    this.each(buffer, buffer.groups.values())
  }

  close(): void {
    this.#closed = true
    this.#left.clear()
  }

  #after(ms: number, buffer: OpenBuffer): void {
    this.#later.add(buffer)
    this.#clock.after(ms, () => {
      this.#later.delete(buffer)
      this.groupsOf(buffer)
    })
  }

  #slice(): void {
    const [first] = this.#left
    if (first === undefined) return
    const [owner, groups] = first
    const isOver = this.#tellSome(groups)
    // What was told meanwhile may have begun anew, or closed the shard.
    if (this.#left.get(owner) === groups) {
      this.#left.delete(owner)
      if (!isOver) this.#left.set(owner, groups)
    }
    if (this.#left.size > 0) this.#clock.after(0, () => this.#slice())
  }

  /** A group that closes before its turn leaves the iterator by itself. True: that was the last one. */
  #tellSome(groups: Iterator<OpenGroup>): boolean {
    for (let told = 0; told < TOLD_AT_ONCE; told++) {
      const next = groups.next()
      if (next.done || this.#closed) return true
      this.#tell(next.value)
    }
    return false
  }
}
