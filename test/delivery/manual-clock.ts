import type { Clock } from '../../internal/runtime/clock.ts'

/** Time that passes only when a test says so. */
export class ManualClock implements Clock {
  #now = 0
  #suspendedMs = 0
  readonly #timers = new Set<{ at: number; task: () => void }>()

  now(): number {
    return this.#now + this.#suspendedMs
  }

  monotonic(): number {
    return this.#now
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#now + ms, task }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Timers that neither ran nor were cancelled. */
  get pending(): number {
    return this.#timers.size
  }

  /** The machine stands still: only the wall clock goes on. */
  suspend(ms: number): void {
    this.#suspendedMs += ms
  }

  advance(ms: number): void {
    this.#now += ms
    for (const timer of [...this.#timers]) {
      if (timer.at > this.#now) continue
      this.#timers.delete(timer)
      timer.task()
    }
  }
}
