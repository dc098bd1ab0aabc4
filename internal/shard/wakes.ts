/**
 * One wake heap a shard and one timer (design, section 6). A group's entry counts only while it equals the
 * group's armed time; stale entries are dropped when they come up.
 */
import type { Clock } from '../runtime/clock.ts'

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
  #heap: Entry<T>[] = []
  #timer: { at: number; cancel: () => void } | null = null
  #stopped = false

  constructor(clock: Clock, wake: (target: T, now: number) => void) {
    this.#clock = clock
    this.#wake = wake
  }

  /** Arms the target for `at` (Unix ms), in place of what was armed. */
  arm(target: T, at: number): void {
    target.wakeAt = at
    this.#push({ at, target })
    this.#schedule()
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
    this.#heap = []
  }

  #schedule(): void {
    const first = this.#heap[0]
    if (!first || this.#stopped || (this.#timer && this.#timer.at <= first.at)) return
    this.#timer?.cancel()
    const cancel = this.#clock.after(Math.max(0, first.at - this.#clock.now()), () => this.#run())
    this.#timer = { at: first.at, cancel }
  }

  #run(): void {
    this.#timer = null
    const now = this.#clock.now()
    for (let first = this.#heap[0]; first && first.at <= now && !this.#stopped; first = this.#heap[0]) {
      this.#pop()
      if (first.target.wakeAt !== first.at) continue
      first.target.wakeAt = Number.POSITIVE_INFINITY
      this.#wake(first.target, now)
    }
    this.#schedule()
  }

  #push(entry: Entry<T>): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(entry)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.at <= entry.at) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = entry
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++
      if (heap[child]!.at >= last.at) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}
