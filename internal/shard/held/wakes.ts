/**
 * One wake heap a shard and one timer (docs/architecture/protocol.md, "Due times").
 *
 * Invariant: a group stands in the heap once while a wake is armed, and not at all otherwise. So the heap holds nothing of
 * groups that have left.
 */
import type { Clock } from '../../runtime/clock.ts'
import { Heap } from '../../runtime/heap.ts'
import type { OpenGroup } from './live.ts'

/** In one turn of the event loop: after a time in which the process stood still, very many may be due. */
const WOKEN_AT_ONCE = 500
/** A clock that is set back by less makes nobody wait for long, ms. */
const SET_BACK_MS = 100

export type Wakeable = Pick<OpenGroup, 'wakeAt' | 'wakeIndex'>

export class Wakes<T extends Wakeable> {
  readonly #clock: Clock
  readonly #wake: (target: T, now: number) => void
  #heap = wakeHeap<T>()
  #timer: { at: number; cancel: () => void } | null = null
  /** By how much the wall clock was ahead of the monotonic one when a wake was armed, at most, ms. */
  #aheadMs = Number.NEGATIVE_INFINITY
  #stopped = false

  constructor(clock: Clock, wake: (target: T, now: number) => void) {
    this.#clock = clock
    this.#wake = wake
  }

  /** Targets with an armed wake. */
  get size(): number {
    return this.#heap.size
  }

  /** Arms the target for `at` (Unix ms), in place of what was armed. */
  arm(target: T, at: number): void {
    if (this.#stopped) return
    this.disarm(target)
    target.wakeAt = at
    this.#aheadMs = Math.max(this.#aheadMs, this.#wallAheadMs())
    this.#heap.push(target)
    this.#schedule()
  }

  disarm(target: T): void {
    if (this.#stopped) return
    if (target.wakeIndex >= 0) this.#heap.remove(target.wakeIndex)
    target.wakeAt = Number.POSITIVE_INFINITY
  }

  /** Whether the clock was set back since some wake was armed: that one is late by the difference, unless it is armed anew. */
  mayBeLate(): boolean {
    const aheadMs = this.#wallAheadMs()
    if (aheadMs > this.#aheadMs - SET_BACK_MS) return false
    this.#aheadMs = aheadMs
    return true
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
    this.#heap = wakeHeap()
  }

  #wallAheadMs(): number {
    return this.#clock.now() - this.#clock.monotonic()
  }

  #schedule(): void {
    const first = this.#heap.first
    if (!first || this.#stopped || (this.#timer && this.#timer.at <= first.wakeAt)) return
    this.#timer?.cancel()
    const at = first.wakeAt
    const cancel = this.#clock.after(Math.max(0, at - this.#clock.now()), () => this.#run())
    this.#timer = { at, cancel }
  }

  #run(): void {
    this.#timer = null
    const now = this.#clock.now()
    for (let woken = 0; woken < WOKEN_AT_ONCE && !this.#stopped; woken++) {
      const { first } = this.#heap
      if (!first || first.wakeAt > now) break
      this.disarm(first)
      this.#wake(first, now)
    }
    this.#schedule()
  }
}

function wakeHeap<T extends Wakeable>(): Heap<T> {
  const place = (target: T, index: number) => {
    target.wakeIndex = index
  }
  return new Heap((one, other) => one.wakeAt < other.wakeAt, place)
}
