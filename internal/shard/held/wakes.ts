/**
 * One wake heap a shard and one timer (docs/architecture/protocol.md, "Due times"). A group's entry counts only while
 * it equals the group's armed time; stale entries are dropped when they come up.
 */
import type { Clock } from '../../runtime/clock.ts'
import { Heap } from '../../runtime/heap.ts'

export interface Wakeable {
  wakeAt: number
}

interface Entry<T> {
  readonly at: number
  readonly target: T
}

export class Wakes<T extends Wakeable> {
  readonly #clock: Clock
  readonly #wake: (target: T, now: number) => void
  #heap = new Heap<Entry<T>>((one, other) => one.at < other.at)
  #timer: { at: number; cancel: () => void } | null = null
  #stopped = false

  constructor(clock: Clock, wake: (target: T, now: number) => void) {
    this.#clock = clock
    this.#wake = wake
  }

  /** Arms the target for `at` (Unix ms), in place of what was armed. */
  arm(target: T, at: number): void {
    target.wakeAt = at
    this.#heap.push({ at, target })
    this.#schedule()
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
    this.#heap = new Heap((one, other) => one.at < other.at)
  }

  #schedule(): void {
    const first = this.#heap.first
    if (!first || this.#stopped || (this.#timer && this.#timer.at <= first.at)) return
    this.#timer?.cancel()
    const cancel = this.#clock.after(Math.max(0, first.at - this.#clock.now()), () => this.#run())
    this.#timer = { at: first.at, cancel }
  }

  #run(): void {
    this.#timer = null
    const now = this.#clock.now()
    for (let first = this.#heap.first; first && first.at <= now && !this.#stopped; first = this.#heap.first) {
      this.#heap.pop()
      if (first.target.wakeAt !== first.at) continue
      first.target.wakeAt = Number.POSITIVE_INFINITY
      this.#wake(first.target, now)
    }
    this.#schedule()
  }
}
