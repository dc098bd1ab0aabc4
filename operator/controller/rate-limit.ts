/** How long a failed key waits: its own growing delay, and a bucket that all failed keys share. Both as in client-go. */
import type { Clock } from '../../internal/runtime/clock.ts'

/** Delay of a key's first failure, ms; it doubles with each that follows. */
export const FIRST_DELAY_MS = 5
/** Longest delay of a key, ms. */
export const LONGEST_DELAY_MS = 5 * 60_000

/** Failures in a row, by key. */
export class RetryDelays {
  readonly #failures = new Map<string, number>()

  /** Counts a failure of `key`; ms until its next try, `FIRST_DELAY_MS` to `LONGEST_DELAY_MS`. */
  next(key: string): number {
    const before = this.failures(key)
    this.#failures.set(key, before + 1)
    return Math.min(FIRST_DELAY_MS * 2 ** before, LONGEST_DELAY_MS)
  }

  forget(key: string): void {
    this.#failures.delete(key)
  }

  failures(key: string): number {
    return this.#failures.get(key) ?? 0
  }

  /** Keys whose last pass failed. */
  get size(): number {
    return this.#failures.size
  }
}

/** A token bucket that lends: who comes too early is told how long to wait, and its token is spent already. */
export class TokenBucket {
  readonly #clock: Clock
  readonly #perSecond: number
  readonly #burst: number
  #tokens: number
  #filledAt: number

  constructor(clock: Clock, options: { perSecond: number; burst: number }) {
    this.#clock = clock
    this.#perSecond = options.perSecond
    this.#burst = options.burst
    this.#tokens = options.burst
    this.#filledAt = clock.monotonic()
  }

  /** Takes a token; ms until it is there, 0 when it is. */
  reserve(): number {
    this.#fill()
    this.#tokens -= 1
    return Math.max(0, -this.#tokens / this.#perSecond) * 1_000
  }

  /** Takes a token when there is one. */
  tryTake(): boolean {
    this.#fill()
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }

  #fill(): void {
    const now = this.#clock.monotonic()
    const filled = ((now - this.#filledAt) / 1_000) * this.#perSecond
    this.#tokens = Math.min(this.#burst, this.#tokens + filled)
    this.#filledAt = now
  }
}
