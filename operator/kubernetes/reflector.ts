/**
 * Keeps a store equal to one collection of the API server: lists it in pages, then watches it from there, for as long as the
 * operator runs and whatever the network does. Invariant: what the store shows is a state that the collection had, never
 * older than one shown before, and it catches up once the API server answers.
 */
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'
import { pause } from '../../internal/runtime/pause.ts'
import type { Named } from '../controller/ports.ts'
import { ApiError, hasStatus } from './api-error.ts'
import type { ApiServer, Query, WatchEvent } from './api-server.ts'
import type { Keeps } from './json-members.ts'
import { ofMetadata, ofResource } from './kept.ts'

/** Resources of one answer to a list: one may be some megabytes. */
export const PAGE = 100
/** The same after answers that did not come in time: it is halved down to this. */
const SMALLEST_PAGE = 5
/** https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches */
const METADATA_ONLY = {
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  watch: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
}
/** A watch is opened anew after a random time in this range, s: so those of many clients do not end together. */
const WATCH_SECONDS = { least: 290, most: 590 }
/** The API server sends a bookmark each minute at the latest; ms. */
const SILENT_MS = 150_000
/** The whole collection is listed anew so often, in case an event was lost; ms, plus up to a tenth. */
const RELIST_MS = 60 * 60_000
/** Longest pause after the first failure, ms; it doubles with each up to the last. */
const PAUSE_MS = { first: 800, longest: 30_000 }
/** A watch that lived so long was no failure, whatever ended it; ms. */
const LIVED_MS = 5_000
/** An error that stays may be one of the position: then only a list helps. */
const FAILURES_BEFORE_LIST = 3

/** What a reflector writes into: a store, or a namespace of it. */
export interface Replica<T> {
  put(object: T): void
  remove(object: T): void
  /** All there is of `namespace`; undefined: of all namespaces. */
  replace(objects: readonly T[], namespace: string | undefined): void
}

export interface ReflectorLog {
  debug(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
}

export interface ReflectorOptions<T> {
  api: ApiServer
  /** Of the collection without its namespace, such as `/api/v1/secrets`. */
  collection: Collection
  /** undefined: all namespaces. */
  namespace?: string
  /** Selectors. */
  query?: Query
  /** Only `metadata` of the resources is asked for. */
  metadataOnly?: boolean
  replica: Replica<T>
  clock: Clock
  randomness: Pick<Randomness, 'fraction'>
  log: ReflectorLog
  telemetry?: ReflectorTelemetry
  silentMs?: number
  relistMs?: number
}

export interface Collection {
  /** `/api/v1` or `/apis/<group>/<version>`. */
  readonly root: string
  readonly plural: string
}

export interface ReflectorTelemetry {
  listed(event: { collection: string; objects: number }): void
  /** A list or watch failed. */
  failed(event: { collection: string }): void
}

interface ListAnswer<T> {
  metadata: { resourceVersion: string; continue?: string }
  /** null: an API server answers so to a metadata-only list of nothing. */
  items: T[] | null
}

/** A list under way: its pages so far, and where the next one begins. */
interface Pages<T> {
  readonly objects: T[]
  token: string | undefined
}

export class Reflector<T extends Named> {
  readonly #options: ReflectorOptions<T>
  readonly #path: string
  readonly #keeps: Keeps
  readonly #synced = Promise.withResolvers<void>()
  /** Where the next watch begins; undefined: a list comes first. */
  #version: string | undefined
  /** A page that was lost is asked for again: behind a line that is cut often a long list would never end otherwise. */
  #pages: Pages<T> = { objects: [], token: undefined }
  #paged = true
  #pageSize = PAGE
  #relistAt = 0
  #heardAt: number | undefined
  /** Of the running watch, or of the last one. */
  #openedAt: number | undefined
  #failures = 0

  constructor(options: ReflectorOptions<T>) {
    this.#options = options
    const { collection, namespace, metadataOnly } = options
    this.#keeps = metadataOnly ? ofMetadata : ofResource
    const within = namespace === undefined ? '' : `/namespaces/${namespace}`
    this.#path = `${collection.root}${within}/${collection.plural}`
  }

  /** Resolves after the first complete list; never, when the reflector is stopped before. */
  get synced(): Promise<void> {
    return this.#synced.promise
  }

  get plural(): string {
    return this.#options.collection.plural
  }

  /** Monotonic ms of the last sign of life of a list or watch; undefined: none yet. */
  get heardAt(): number | undefined {
    return this.#heardAt
  }

  /** Until `signal` is aborted; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const pauseMs = await this.#round(signal).then(
        () => this.#afterEnd(),
        (error: unknown) => (signal.aborted ? 0 : this.#afterFailure(error)),
      )
      if (pauseMs > 0) await pause(this.#options.clock, pauseMs, signal)
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    this.#openedAt = undefined
    if (this.#version === undefined || clock.monotonic() >= this.#relistAt) await this.#list(signal)
    await this.#watch(signal)
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { replica, namespace, telemetry, clock, randomness, relistMs = RELIST_MS } = this.#options
    let last: ListAnswer<T>
    do {
      last = await this.#page(this.#pages.token, signal)
      for (const object of last.items ?? []) this.#pages.objects.push(object)
      this.#pages.token = last.metadata.continue || undefined
      this.#heard()
      this.#failures = 0
    } while (this.#pages.token !== undefined)
    const { objects } = this.#pages
    this.#beginAnew()
    replica.replace(objects, namespace)
    this.#version = last.metadata.resourceVersion
    this.#paged = true
    this.#pageSize = PAGE
    this.#relistAt = clock.monotonic() + relistMs * (1 + randomness.fraction() / 10)
    telemetry?.listed({ collection: this.plural, objects: objects.length })
    this.#synced.resolve()
  }

  #beginAnew(): void {
    this.#pages = { objects: [], token: undefined }
  }

  async #page(token: string | undefined, signal: AbortSignal): Promise<ListAnswer<T>> {
    const { api, query, metadataOnly } = this.#options
    const limit = this.#paged ? this.#pageSize : undefined
    const accept = metadataOnly ? { accept: METADATA_ONLY.list } : {}
    try {
      return await api.request('GET', this.#path, {
        query: { ...query, limit, continue: token },
        ...accept,
        keeps: this.#keeps,
        signal,
      })
    } catch (error) {
      // The pages outlived their snapshot: in one piece it needs none.
      if (token !== undefined && hasStatus(error, 410)) this.#paged = false
      if (isTimeout(error)) this.#pageSize = Math.max(SMALLEST_PAGE, Math.floor(this.#pageSize / 2))
      throw error
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { api, query, metadataOnly, randomness, silentMs = SILENT_MS } = this.#options
    const { least, most } = WATCH_SECONDS
    const events = api.watch<T>(this.#path, {
      query: {
        ...query,
        resourceVersion: this.#version,
        allowWatchBookmarks: true,
        timeoutSeconds: Math.floor(least + randomness.fraction() * (most - least + 1)),
      },
      ...(metadataOnly && { accept: METADATA_ONLY.watch }),
      keeps: this.#keeps,
      signal,
      silentMs,
      onOpen: () => {
        this.#heard()
        this.#openedAt = this.#heardAt
      },
    })
    for await (const event of events) this.#take(event)
  }

  #take({ type, object }: WatchEvent<T>): void {
    const { replica } = this.#options
    this.#heard()
    this.#failures = 0
    if (type === 'DELETED') replica.remove(object)
    else if (type !== 'BOOKMARK') replica.put(object)
    this.#version = object.metadata?.resourceVersion ?? this.#version
  }

  #heard(): void {
    this.#heardAt = this.#options.clock.monotonic()
  }

  /** The API server ended the watch, as it was asked to. One that ends all of them at once is no reason for a storm. */
  #afterEnd(): number {
    this.#failures = this.#lived() ? 0 : this.#failures + 1
    return this.#backOff()
  }

  #afterFailure(error: unknown): number {
    const { log, telemetry } = this.#options
    this.#failures = this.#lived() ? 1 : this.#failures + 1
    if (wantsList(error, this.#failures)) {
      this.#version = undefined
      this.#beginAnew()
    }
    telemetry?.failed({ collection: this.plural })
    const level = hasStatus(error, 410) ? 'debug' : 'warn'
    log[level]({ err: error, collection: this.plural, failures: this.#failures }, 'watch failed')
    return Math.max(this.#backOff(), (error instanceof ApiError && error.retryAfterMs) || 0)
  }

  #lived(): boolean {
    return this.#openedAt !== undefined && this.#options.clock.monotonic() - this.#openedAt >= LIVED_MS
  }

  /** Ms, full jitter: clients that were cut off together come back one by one. */
  #backOff(): number {
    if (this.#failures === 0) return 0
    const longest = Math.min(PAUSE_MS.first * 2 ** (this.#failures - 1), PAUSE_MS.longest)
    return longest * this.#options.randomness.fraction()
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof ApiError && (error.cause as Partial<Error> | undefined)?.name === 'TimeoutError'
}

/** Without an answer the position is as good as before; refused with 4xx, or again and again, it may not be. */
function wantsList(error: unknown, failures: number): boolean {
  if (!(error instanceof ApiError)) return true
  if (error.status === 0 || error.status === 429) return false
  return error.status < 500 || failures >= FAILURES_BEFORE_LIST
}
