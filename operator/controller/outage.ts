/**
 * Keys whose passes got no answer of the service. When it answers again, all of them are tried at once, however long their
 * back-off has become; while it does not, one of them is tried every few seconds, so that its return is noticed. What runs at
 * once (`turns.ts`) bounds how many requests that makes at a time.
 */
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'

/** How often one of the keys is tried, ms, give or take a quarter. */
const PROBE_MS = 3_000
/**
 * An answer may come of a service that fails for most: the keys are not tried again so soon after they were, ms. It doubles
 * up to the last while most of them fail again.
 */
const PAUSE_MS = { first: 5_000, longest: 60_000 }

export interface OutageOptions {
  clock: Clock
  randomness: Pick<Randomness, 'fraction'>
  /** Asks for a pass of the key now. */
  retry(key: string): void
  /** So many keys are tried. */
  onReturn(keys: number): void
}

export class Outage {
  readonly #options: OutageOptions
  /** Those that wait, the one that was tried longest ago first. */
  readonly #waiting = new Set<string>()
  /** Those of the last return, and how many of them failed since. */
  #tried: ReadonlySet<string> = new Set()
  #failedAgain = 0
  #returns = 0
  #pauseMs: number = PAUSE_MS.first
  /** Monotonic ms. */
  #notBefore = Number.NEGATIVE_INFINITY
  #cancelProbe: (() => void) | undefined
  #cancelReturn: (() => void) | undefined
  #closed = false

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /** How often the service has come back so far. What it asked for before that does not count any more. */
  get returns(): number {
    return this.#returns
  }

  /** A pass of the key got no answer, or 5xx. */
  missed(key: string): void {
    if (this.#closed) return
    if (this.#tried.has(key) && !this.#waiting.has(key)) this.#failedAgain++
    this.#waiting.delete(key)
    this.#waiting.add(key)
    this.#cancelProbe ??= this.#probeLater()
  }

  /** The service answered a pass, whatever it said. */
  answered(): void {
    if (this.#waiting.size === 0 || this.#closed) return
    const leftMs = this.#notBefore - this.#options.clock.monotonic()
    if (leftMs <= 0) this.#return()
    else this.#cancelReturn ??= this.#options.clock.after(leftMs, () => this.#return())
  }

  /** Nothing is left to do for the key. */
  forget(key: string): void {
    this.#waiting.delete(key)
  }

  close(): void {
    this.#closed = true
    this.#cancelTimers()
  }

  #return(): void {
    const { clock, retry, onReturn } = this.#options
    this.#cancelTimers()
    const mostFailed = this.#failedAgain * 2 > this.#tried.size
    this.#pauseMs = mostFailed ? Math.min(this.#pauseMs * 2, PAUSE_MS.longest) : PAUSE_MS.first
    this.#notBefore = clock.monotonic() + this.#pauseMs
    this.#tried = new Set(this.#waiting)
    this.#failedAgain = 0
    this.#waiting.clear()
    this.#returns++
    onReturn(this.#tried.size)
    for (const key of this.#tried) retry(key)
  }

  #probeLater(): () => void {
    const { clock, randomness } = this.#options
    return clock.after(PROBE_MS * (0.75 + randomness.fraction() / 2), () => this.#probe())
  }

  #probe(): void {
    const [key] = this.#waiting
    this.#cancelProbe = key === undefined ? undefined : this.#probeLater()
    if (key === undefined) return
    // Behind the others, also where its pass takes long.
    this.#waiting.delete(key)
    this.#waiting.add(key)
    this.#options.retry(key)
  }

  #cancelTimers(): void {
    this.#cancelProbe?.()
    this.#cancelReturn?.()
    this.#cancelProbe = undefined
    this.#cancelReturn = undefined
  }
}
