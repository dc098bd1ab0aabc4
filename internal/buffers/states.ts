/**
 * What changes about buffers without their owner (docs/reference/api.md, "Buffers"): pauses and dead letters, all buffers in
 * one answer. Whoever names the tag of the last answer waits for the next change. So a program that keeps buffers as they
 * should be hears of a change at once, and asks once a minute while there is none.
 */
import { createHash } from 'node:crypto'
import { ServiceError } from '../domain/errors.ts'
import type { PauseReason } from '../domain/model.ts'
import { type Principal, type Scope, scopeOf } from '../domain/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { SharedTurns } from '../runtime/shared-turns.ts'
import type { BufferChanges } from './changes.ts'

/** Dead letters of one buffer are counted up to so many: more make an answer no more useful, and dear. */
export const MOST_COUNTED = 100
/** Requests of one customer that stand in line for a reading in a process; the next are refused. */
export const QUEUED = 100
/** Requests of one customer, and of all, that wait for a change at once in a process; the next are answered at once. */
export const WAITERS = { customer: 10, process: 1_000 }
/** What changes within this time of the first change is told with it, ms. */
const GATHER_MS = 300
const RETRY_AFTER_MS = 5_000

/** One buffer. Times are Unix epoch ms. */
export interface BufferState {
  readonly bufferId: string
  readonly projectId: string
  readonly enabled: boolean
  readonly pausedReason?: PauseReason
  readonly pausedAt?: number
  readonly consecutiveDlqCount: number
  /** 0 to `MOST_COUNTED`. */
  readonly deadLetters: number
  /** Of the newest dead letter; absent: there is none. */
  readonly lastDeadLetterAt?: number
  readonly updatedAt: number
}

export interface BufferStates {
  readonly tag: string
  /** In the order of their ids. */
  readonly buffers: readonly BufferState[]
}

/** What the tag is made of. `uid`: a buffer that was made anew is another one. */
export type StateMark = Pick<BufferState, 'updatedAt' | 'enabled' | 'pausedAt'> & { readonly uid: string }

/** Of the buffers that a scope reaches, in the order of their ids. */
export interface StateStore {
  marks(scope: Scope): Promise<readonly StateMark[]>
  /** Dead letters of a buffer are counted up to `mostCounted`. */
  states(scope: Scope, mostCounted: number): Promise<readonly (BufferState & StateMark)[]>
}

export interface StatesRequest {
  /** Tag of the last answer; undefined: answer at once. */
  readonly after?: string
  /** How long to wait for another tag, ms. */
  readonly waitMs: number
  /** Whoever asked has gone. */
  readonly gone: AbortSignal
}

export interface BufferStatesOptions {
  store: StateStore
  changes: BufferChanges
  clock: Clock
}

export class BufferStatesReading {
  readonly #options: BufferStatesOptions
  /** One statement of a customer at a time: some count dead letters. */
  readonly #turns = new SharedTurns({
    mostQueued: QUEUED,
    refusal: () => new ServiceError('requestRate', {}, { retryAfterMs: RETRY_AFTER_MS }),
  })
  readonly #waiting = new Map<string, number>()
  #waitingInAll = 0

  constructor(options: BufferStatesOptions) {
    this.#options = options
  }

  /** Beyond `WAITERS` nobody waits. 429 when too many of the customer stand in line. */
  async states(principal: Principal, request: StatesRequest): Promise<BufferStates> {
    const isWaiting = request.after !== undefined && request.waitMs > 0
    if (!isWaiting || !this.#enter(principal.customerId)) return this.#read(principal, request.gone)
    try {
      return await this.#whenChanged(principal, request)
    } finally {
      this.#leave(principal.customerId)
    }
  }

  async #whenChanged(principal: Principal, { after, waitMs, gone }: StatesRequest): Promise<BufferStates> {
    const { clock, changes } = this.#options
    const until = clock.monotonic() + waitMs
    while (!gone.aborted) {
      // Before the reading: a change right behind it must not be missed.
      const waiter = changes.waiter(principal.customerId)
      try {
        const tag = await this.#tag(principal, gone)
        const leftMs = until - clock.monotonic()
        if (tag !== after || leftMs <= 0 || gone.aborted || changes.closed) break
        await orAfter(clock, leftMs, gone, waiter.changed)
      } finally {
        waiter.end()
      }
      if (!changes.closed) await orAfter(clock, GATHER_MS, gone)
    }
    return this.#read(principal, gone)
  }

  #tag(principal: Principal, gone: AbortSignal): Promise<string> {
    return this.#inTurn('marks', principal, gone, async (store, scope) => tagOf(await store.marks(scope)))
  }

  #read(principal: Principal, gone: AbortSignal): Promise<BufferStates> {
    return this.#inTurn('states', principal, gone, async (store, scope) => {
      const stored = await store.states(scope, MOST_COUNTED)
      return { tag: tagOf(stored), buffers: stored.map(({ uid: _, ...state }) => state) }
    })
  }

  #inTurn<T>(
    what: 'marks' | 'states',
    principal: Principal,
    gone: AbortSignal,
    read: (store: StateStore, scope: Scope) => Promise<T>,
  ): Promise<T> {
    const scope = scopeOf(principal)
    const key = JSON.stringify([what, scope.projectIds?.toSorted() ?? null])
    return this.#turns.run(scope.customerId, key, () => read(this.#options.store, scope), gone)
  }

  /** Whether there was room; then `#leave` is to be called. */
  #enter(customerId: string): boolean {
    const ofCustomer = this.#waiting.get(customerId) ?? 0
    if (ofCustomer >= WAITERS.customer || this.#waitingInAll >= WAITERS.process) return false
    this.#waiting.set(customerId, ofCustomer + 1)
    this.#waitingInAll++
    return true
  }

  #leave(customerId: string): void {
    const left = this.#waiting.get(customerId)! - 1
    if (left === 0) this.#waiting.delete(customerId)
    else this.#waiting.set(customerId, left)
    this.#waitingInAll--
  }
}

/** Not of the counters: they change with each dead letter. */
function tagOf(marks: readonly StateMark[]): string {
  const told = marks.map(({ uid, updatedAt, enabled, pausedAt = null }) => [
    uid,
    updatedAt,
    enabled,
    pausedAt,
  ])
  return createHash('sha256').update(JSON.stringify(told)).digest('base64url')
}

/** Resolves with `sooner`, after `ms`, or once `gone` is aborted. */
function orAfter(clock: Clock, ms: number, gone: AbortSignal, sooner?: Promise<void>): Promise<void> {
  if (gone.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      cancel()
      gone.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    gone.addEventListener('abort', end)
    void sooner?.then(end)
  })
}
