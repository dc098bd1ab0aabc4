/**
 * When groups that hold nothing were flushed last (docs/architecture/protocol.md, "Groups"): their buffer keeps two flushes
 * of a group apart, for up to a day. An open group takes ten times the memory of its name and a time.
 *
 * Invariant: the number of flushes is bounded whatever groups come and go, and each customer has a share. A buffer beyond
 * its share forgets its own oldest one: that group may be flushed again too soon, as after a change of owner.
 */
import { SharedBudget, type Taker } from '../../runtime/shared-budget.ts'
import type { BufferState } from './buffer-state.ts'

/** Of a shard, some 80 bytes each. */
export const MOST_FLUSHES = 50_000

export class LastFlushes {
  readonly #budget: SharedBudget
  /** Small numbers take less memory than times since 1970. */
  readonly #origin: number
  /** Of each buffer, by group id: ms since the origin. About in the order of their times. */
  readonly #buffers = new Map<BufferState, Map<string, number>>()

  /** `now`: Unix ms. */
  constructor(now: number, most = MOST_FLUSHES) {
    this.#origin = now
    this.#budget = new SharedBudget(most)
  }

  has(buffer: BufferState): boolean {
    return this.#buffers.has(buffer)
  }

  /** `at`: Unix ms. The record of the buffer is known. */
  remember(buffer: BufferState, groupId: string, at: number): void {
    const flushes = this.#buffers.get(buffer) ?? new Map<string, number>()
    if (!this.#budget.hasRoom(takerOf(buffer))) {
      const [oldest] = flushes.keys()
      if (oldest === undefined) return
      this.#forget(buffer, oldest)
    }
    this.#budget.take(takerOf(buffer), 1)
    flushes.set(groupId, at - this.#origin)
    this.#buffers.set(buffer, flushes)
  }

  /** Unix ms, at most `now`; undefined: none is known. It is the caller's to remember from now on. */
  take(buffer: BufferState, groupId: string, now: number): number | undefined {
    const at = this.#buffers.get(buffer)?.get(groupId)
    if (at === undefined) return undefined
    this.#forget(buffer, groupId)
    return Math.min(at + this.#origin, now)
  }

  /** Forgets those that hold nothing back any more at `now`, Unix ms, and returns the buffers that have none left. */
  forgetOver(now: number): BufferState[] {
    const done: BufferState[] = []
    for (const [buffer, flushes] of this.#buffers) {
      const { minDelayBetweenFlushMs } = buffer.policy
      const over = buffer.record?.deleted
        ? Number.POSITIVE_INFINITY
        : now - this.#origin - minDelayBetweenFlushMs
      for (const [groupId, at] of flushes) {
        if (at > over) break
        this.#forget(buffer, groupId)
      }
      if (!this.has(buffer)) done.push(buffer)
    }
    return done
  }

  #forget(buffer: BufferState, groupId: string): void {
    const flushes = this.#buffers.get(buffer)
    if (!flushes?.delete(groupId)) return
    this.#budget.leave(takerOf(buffer), 1)
    if (flushes.size === 0) this.#buffers.delete(buffer)
  }
}

function takerOf({ uid, record }: BufferState): Taker {
  return { customerId: record!.buffer.customerId, flow: uid }
}
