/**
 * A bounded number of slots for work that runs at once.
 *
 * Invariant: a slot that is released while somebody waits is handed on to him. It is never free in between, so nobody
 * who comes later takes it, and no more than `slots` are ever held.
 */
import { Fifo } from './fifo.ts'

export class Semaphore {
  readonly #slots: number
  #held = 0
  readonly #waiting = new Fifo<() => void>()

  /** `slots`: 1 or more. */
  constructor(slots: number) {
    this.#slots = slots
  }

  /** Slots that are held now. */
  get held(): number {
    return this.#held
  }

  /** How many wait for a slot now. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Takes a slot when one is free. Whoever gets true must call `release` once. */
  tryAcquire(): boolean {
    if (this.#held >= this.#slots) return false
    this.#held++
    return true
  }

  /** Resolves when the caller holds a slot, in the order of the calls; it must call `release` once. */
  async acquire(): Promise<void> {
    if (!this.tryAcquire()) await new Promise<void>((resume) => this.#waiting.push(resume))
  }

  release(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#held--
  }
}
