/**
 * Token buckets by name: so many tokens come a second, and a bucket that was left alone holds `burst` of them. It is
 * the generic cell rate algorithm (ITU-T I.371, virtual scheduling): of a bucket only the moment is kept at which it is
 * full again, and of a full one nothing.
 */
import type { Clock } from './clock.ts'

export interface TokenBucketOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  /** Tokens that come, > 0. Infinity: there is no limit. */
  readonly perSecond: number
  /** Tokens of a full bucket, >= 1. */
  readonly burst: number
}

/** So many names are held before those of full buckets are looked for. */
const SWEEP_FROM = 1_000

export class TokenBuckets {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Between two tokens, ms. */
  readonly #every: number
  /** How far ahead of now a bucket may be full again and still give a token, ms. */
  readonly #ahead: number
  /** When each bucket is full again, monotonic ms. */
  readonly #fullAt = new Map<string, number>()
  #sweepAt = SWEEP_FROM

  constructor({ clock, perSecond, burst }: TokenBucketOptions) {
    this.#clock = clock
    this.#every = 1_000 / perSecond
    this.#ahead = this.#every * (burst - 1)
  }

  /** Takes a token of this bucket and answers 0, or takes none and answers how long to wait for one, ms. */
  take(name: string): number {
    if (this.#every === 0) return 0
    const now = this.#clock.monotonic()
    const fullAt = Math.max(this.#fullAt.get(name) ?? 0, now)
    const wait = fullAt - now - this.#ahead
    if (wait > 0) return wait
    this.#fullAt.set(name, fullAt + this.#every)
    if (this.#fullAt.size >= this.#sweepAt) this.#sweep(now)
    return 0
  }

  /** Takes so many tokens of this bucket, 0 or more, also those that are still to come. */
  spend(name: string, tokens: number): void {
    if (this.#every === 0 || tokens === 0) return
    const now = this.#clock.monotonic()
    this.#fullAt.set(name, Math.max(this.#fullAt.get(name) ?? 0, now) + tokens * this.#every)
    if (this.#fullAt.size >= this.#sweepAt) this.#sweep(now)
  }

  /** How long until this bucket has all the tokens that were spent in advance, ms; 0: it owes none. */
  owes(name: string): number {
    if (this.#every === 0) return 0
    const empty = this.#clock.monotonic() + this.#ahead + this.#every
    return Math.max(0, (this.#fullAt.get(name) ?? 0) - empty)
  }

  /** Buckets that are held. */
  get size(): number {
    return this.#fullAt.size
  }

  #sweep(now: number): void {
    for (const [name, fullAt] of this.#fullAt) if (fullAt <= now) this.#fullAt.delete(name)
    this.#sweepAt = Math.max(SWEEP_FROM, 2 * this.#fullAt.size)
  }
}
