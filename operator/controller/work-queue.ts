/**
 * The keys that want a pass, with the semantics of client-go's work queue. Invariants: a key is handed out to one worker at a
 * time; however often it is added before or during its pass, one further pass follows, and it begins after the last add.
 * Unlike there, namespaces take turns (`turns.ts`).
 */
import type { Clock } from '../../internal/runtime/clock.ts'
import { RetryBuckets, RetryDelays } from './rate-limit.ts'
import { namespaceOf, Turns, WORKERS } from './turns.ts'

interface Delayed {
  /** Monotonic ms. */
  readonly due: number
  /** It follows a failure. */
  readonly isRetry: boolean
  readonly cancel: () => void
}

export interface Taken {
  readonly key: string
  /** How long it waited for a worker, ms. */
  readonly waitedMs: number
}

export class WorkQueue {
  readonly #clock: Clock
  readonly #delays = new RetryDelays()
  readonly #buckets: RetryBuckets
  /** Keys that a worker may take. */
  readonly #ready: Turns
  /** When each key that wants a pass began to: those in `#ready`, and those added during their pass. */
  readonly #dirty = new Map<string, number>()
  readonly #processing = new Set<string>()
  readonly #delayed = new Map<string, Delayed>()
  readonly #idle: ((taken: Taken | undefined) => void)[] = []
  #closed = false

  /** `workers`: keys that are handed out at once, at most; at least 2. */
  constructor(clock: Clock, workers: number = WORKERS) {
    this.#clock = clock
    this.#ready = new Turns(workers)
    this.#buckets = new RetryBuckets(clock)
  }

  /** Keys that wait for a worker. */
  get depth(): number {
    return this.#ready.depth
  }

  /** Keys whose last pass failed. */
  get failing(): number {
    return this.#delays.size
  }

  /** At once, whatever back-off the key is in: something about it has changed. */
  add(key: string): void {
    if (this.#closed || this.#dirty.has(key)) return
    this.#dirty.set(key, this.#clock.monotonic())
    if (!this.#processing.has(key)) this.#enqueue(key)
  }

  /** After `ms` milliseconds; of two delays of one key the earlier counts. */
  addAfter(key: string, ms: number): void {
    this.#delay(key, ms, false)
  }

  /**
   * After a failed pass: with the key's back-off, and never faster than all failures of its namespace together may be repeated.
   * One that waits for that already goes on waiting: changes in between take it no further back.
   */
  addRateLimited(key: string): void {
    const ownMs = this.#delays.next(key)
    if (this.#delayed.get(key)?.isRetry) return
    this.#delay(key, Math.max(ownMs, this.#buckets.reserve(namespaceOf(key))), true)
  }

  /** A pass of `key` succeeded: its next failure is its first. */
  forget(key: string): void {
    this.#delays.forget(key)
    const standing = this.#delayed.get(key)
    if (!standing?.isRetry) return
    standing.cancel()
    this.#delayed.delete(key)
  }

  /** Failures in a row. */
  failures(key: string): number {
    return this.#delays.failures(key)
  }

  /** The next key, now or once one may begin; its taker calls `done`. undefined: the queue is closed. */
  take(): Promise<Taken | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#handOut()
    })
  }

  /** The pass of a taken key ended, however it did. */
  done(key: string): void {
    this.#processing.delete(key)
    this.#ready.end(key, this.#clock.monotonic())
    if (this.#dirty.has(key)) this.#ready.add(key)
    this.#handOut()
  }

  /** Nothing is handed out any more: whoever runs next lists all resources anyway. */
  close(): void {
    this.#closed = true
    for (const { cancel } of this.#delayed.values()) cancel()
    this.#delayed.clear()
    this.#ready.clear()
    this.#dirty.clear()
    for (const worker of this.#idle.splice(0)) worker(undefined)
  }

  #delay(key: string, ms: number, isRetry: boolean): void {
    if (this.#closed) return
    const due = this.#clock.monotonic() + ms
    const standing = this.#delayed.get(key)
    if (standing && standing.due <= due) return
    standing?.cancel()
    const cancel = this.#clock.after(ms, () => {
      this.#delayed.delete(key)
      this.add(key)
    })
    this.#delayed.set(key, { due, isRetry, cancel })
  }

  #enqueue(key: string): void {
    this.#ready.add(key)
    this.#handOut()
  }

  /** To workers that wait, first come, first served. */
  #handOut(): void {
    while (this.#idle.length > 0) {
      const key = this.#ready.next(this.#clock.monotonic())
      if (key === undefined) return
      this.#idle.shift()!(this.#hand(key))
    }
  }

  #hand(key: string): Taken {
    const waitedMs = this.#clock.monotonic() - (this.#dirty.get(key) ?? this.#clock.monotonic())
    this.#dirty.delete(key)
    this.#processing.add(key)
    return { key, waitedMs }
  }
}
