/** Virtual time: events in order of their time, each followed by all promises it resolves. */
import type { Clock, Randomness } from '../../../internal/runtime/clock.ts'
import { Heap } from '../../../internal/runtime/heap.ts'

interface Event {
  at: number
  order: number
  run: () => void
}

export class Events {
  now = 1_700_000_000_000
  readonly random: () => number
  /** Events that ran. */
  count = 0
  #order = 0
  readonly #events = new Heap<Event>((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order))

  constructor(random: () => number) {
    this.random = random
  }

  after(ms: number, run: () => void): () => void {
    const event = { at: this.now + Math.max(0, ms), order: this.#order++, run }
    this.#events.push(event)
    return () => {
      event.run = () => {}
    }
  }

  between(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1))
  }

  /** Runs events until `until` says so, or the virtual time is over. */
  async run(untilTime: number, until: () => boolean = () => false): Promise<void> {
    for (let next = this.#events.first; next && next.at <= untilTime && !until(); next = this.#events.first) {
      this.#events.pop()
      this.now = Math.max(this.now, next.at)
      this.count++
      next.run()
      // Ticks run when no promise is left to be served: nothing here waits for the real event loop.
      await new Promise<void>((resume) => process.nextTick(resume))
    }
  }
}

/** The time and the luck of one process: nothing happens to it while it is paused, nothing ever after it was killed. */
export class ProcessLife implements Clock, Randomness {
  readonly events: Events
  killed = false
  pausedUntil = 0
  /** Its wall clock is ahead by so many ms. */
  aheadMs = 0
  readonly #onFreeze: () => void

  /** `onFreeze`: somebody may notice that the process is silent. */
  constructor(events: Events, onFreeze: () => void) {
    this.events = events
    this.#onFreeze = onFreeze
  }

  kill(): void {
    this.killed = true
  }

  freeze(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.events.now + ms)
    this.#onFreeze()
  }

  now(): number {
    return this.events.now + this.aheadMs
  }

  monotonic(): number {
    return this.events.now
  }

  after(ms: number, task: () => void): () => void {
    return this.events.after(ms, () => this.whenRunning(task))
  }

  whenRunning(task: () => void): void {
    if (this.killed) return
    if (this.pausedUntil > this.events.now) {
      this.events.after(this.pausedUntil - this.events.now, () => this.whenRunning(task))
    } else task()
  }

  bytes(size: number): Uint8Array {
    return Uint8Array.from({ length: size }, () => Math.floor(this.events.random() * 256))
  }

  fraction(): number {
    return this.events.random()
  }
}
