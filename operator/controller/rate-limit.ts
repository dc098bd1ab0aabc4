/** How long a failed key waits: its own growing delay, and a bucket that all failed keys of its namespace share. */
import type { Clock } from '../../internal/runtime/clock.ts'

/** Longest delay of a key, ms. */
export const LONGEST_DELAY_MS = 5 * 60_000
/** Failed passes of a namespace: so many a second, after so many at once. None waits longer than a key that always fails. */
const RETRIES = { perSecond: 10, burst: 100, longestMs: LONGEST_DELAY_MS }
/** Namespaces whose buckets are remembered; a bucket that was not used for 10 s is as a new one. */
const NAMESPACES = 10_000

/** Delay of a key's first failure, ms; it doubles with each that follows. */
export const FIRST_DELAY_MS = 5

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

/** A bucket for each namespace: none can make the failures of another one wait. */
export class RetryBuckets {
  readonly #clock: Clock
  /** The one that was used longest ago first. */
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes a token of the namespace; ms until it is there, at most `LONGEST_DELAY_MS`. */
  reserve(namespace: string): number {
    const bucket = this.#buckets.get(namespace) ?? new TokenBucket(this.#clock, RETRIES)
    this.#buckets.delete(namespace)
    this.#buckets.set(namespace, bucket)
    if (this.#buckets.size > NAMESPACES) this.#buckets.delete(this.#buckets.keys().next().value!)
    return bucket.reserve()
  }
}

/**
 * A token bucket that lends: who comes too early is told how long to wait, and its token is spent already. It lends `longestMs`
 * ahead at most (default: any time).
 */
export class TokenBucket {
  readonly #clock: Clock
  readonly #perSecond: number
  readonly #burst: number
  readonly #least: number
  #tokens: number
  #filledAt: number

  constructor(clock: Clock, options: { perSecond: number; burst: number; longestMs?: number }) {
    this.#clock = clock
    this.#perSecond = options.perSecond
    this.#burst = options.burst
    this.#least = (-options.perSecond * (options.longestMs ?? Number.POSITIVE_INFINITY)) / 1_000
    this.#tokens = options.burst
    this.#filledAt = clock.monotonic()
  }

  /** Takes a token; ms until it is there, 0 when it is. Those that would wait longer share the last one. */
  reserve(): number {
    this.#fill()
    this.#tokens = Math.max(this.#tokens - 1, this.#least)
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
