/**
 * Follows how the buffers of each API key in use stand, by one request a key that waits at the service for a change
 * (docs/reference/api.md, "Buffers", States). It only makes the operator quicker: what it misses, the usual comparison finds.
 */
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'
import { pause } from '../../internal/runtime/pause.ts'
import { namespaceOf } from '../controller/turns.ts'
import { AdminError, type BufferState, type StateFollower, type StatesAnswer } from '../reconcile/ports.ts'

/** How long a request waits for a change, s; counts are as old at most. */
const WAIT_SECONDS = 50
/** From one request of a key to its next, ms. */
const ROUND_MS = 1_000
/** The same where the service does not wait: too many requests wait there already. */
const POLL_MS = 4_000
/** Pause after a request that failed, ms; it doubles up to the last. */
const PAUSE_MS = { first: 1_000, longest: 15_000, refused: 60_000 }
/**
 * Each takes a connection to the service. Resources of further keys are compared as usual. A namespace gets a further one
 * while more are free than it has, so none takes those of the others.
 */
const MOST_KEYS = 500

export type States = ReadonlyMap<string, BufferState>

export interface StatesFollowerOptions {
  admin: {
    states(key: string, request: StatesQuery, signal: AbortSignal): Promise<StatesAnswer>
  }
  clock: Clock
  randomness: Pick<Randomness, 'fraction'>
  log: { debug(fields: Record<string, unknown>, message: string): void }
  /** How the buffers of the key of these resources, `namespace/name`, stand, by their ids. */
  onTold(resources: Iterable<string>, states: States): void
}

export interface StatesQuery {
  /** `tag` of the last answer. */
  readonly after?: string
  readonly waitSeconds: number
}

interface Followed {
  /** Of the resource that used the key first. */
  readonly namespace: string
  readonly resources: Set<string>
  readonly stop: AbortController
  last?: States
}

export class StatesFollower implements StateFollower {
  readonly #options: StatesFollowerOptions
  readonly #keys = new Map<string, Followed>()
  readonly #keyOf = new Map<string, string>()
  readonly #running = new Set<Promise<void>>()
  #closed = false

  constructor(options: StatesFollowerOptions) {
    this.#options = options
  }

  use(resource: string, apiKey: string | undefined): void {
    const before = this.#keyOf.get(resource)
    if (before === apiKey || this.#closed) return
    if (before !== undefined) this.#leave(resource, before)
    if (apiKey !== undefined) this.#enter(resource, apiKey)
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const { stop } of this.#keys.values()) stop.abort()
    await Promise.all(this.#running)
  }

  #enter(resource: string, apiKey: string): void {
    const followed = this.#keys.get(apiKey) ?? this.#begin(apiKey, namespaceOf(resource))
    if (followed === undefined) return
    this.#keyOf.set(resource, apiKey)
    followed.resources.add(resource)
    if (followed.last !== undefined) this.#options.onTold([resource], followed.last)
  }

  #leave(resource: string, apiKey: string): void {
    this.#keyOf.delete(resource)
    const followed = this.#keys.get(apiKey)
    followed?.resources.delete(resource)
    if (followed?.resources.size !== 0) return
    this.#keys.delete(apiKey)
    followed.stop.abort()
  }

  #begin(apiKey: string, namespace: string): Followed | undefined {
    let own = 0
    for (const each of this.#keys.values()) if (each.namespace === namespace) own++
    if (own >= MOST_KEYS - this.#keys.size) return undefined
    const followed: Followed = { namespace, resources: new Set(), stop: new AbortController() }
    this.#keys.set(apiKey, followed)
    const running = this.#follow(apiKey, followed).finally(() => this.#running.delete(running))
    this.#running.add(running)
    return followed
  }

  /** Until nobody uses the key; never rejects. */
  async #follow(apiKey: string, followed: Followed): Promise<void> {
    const { admin, clock, log, onTold } = this.#options
    const { signal } = followed.stop
    let query: StatesQuery = { waitSeconds: 0 }
    let failures = 0
    while (!signal.aborted) {
      const begun = clock.monotonic()
      try {
        const { tag, buffers } = await admin.states(apiKey, query, signal)
        const elapsedMs = clock.monotonic() - begun
        const waited = query.after !== tag || elapsedMs >= WAIT_SECONDS * 500
        query = { after: tag, waitSeconds: WAIT_SECONDS }
        failures = 0
        followed.last = new Map(buffers.map((state) => [state.bufferId, state]))
        onTold([...followed.resources], followed.last)
        await pause(clock, begun + (waited ? ROUND_MS : POLL_MS) - clock.monotonic(), signal)
      } catch (error) {
        if (signal.aborted) return
        log.debug({ err: error, failures }, 'the states of buffers are not known')
        await pause(clock, this.#pauseMs(error, failures++), signal)
      }
    }
  }

  #pauseMs(error: unknown, failures: number): number {
    const { kind, retryAfterMs = 0 } = error instanceof AdminError ? error : ({} as Partial<AdminError>)
    const isRefused = kind === 'unauthorized' || kind === 'forbidden'
    const longest = isRefused ? PAUSE_MS.refused : Math.min(PAUSE_MS.first * 2 ** failures, PAUSE_MS.longest)
    return Math.max(longest * (0.5 + this.#options.randomness.fraction() / 2), retryAfterMs)
  }
}
