/**
 * Reads gathered as the appends are: one in flight, and what is asked meanwhile joins the next one. However
 * many callers ask for keys that exist nowhere, the database sees one statement at a time, so there is no
 * need to remember that a key is missing, and what was just created is found at once.
 *
 * Invariant: a value is handed over only when nobody told, since its read began, that it changed.
 */

import type { Clock } from './clock.ts'
import { withDeadline } from './deadline.ts'

export interface GatheredReadsOptions<Value> {
  /** One statement for all keys; a missing key has no entry, an Error rejects that key alone. */
  read(keys: readonly string[]): Promise<Map<string, Value | Error>>
  /** The identity under which `changed` names a value. */
  identity(value: Value): string
  /** Called with each value in the same turn in which it was found true: the place to cache it. */
  keep(value: Value): void
  clock: Clock
  /** A read that takes longer rejects its callers (DeadlineError) and makes room for the next, ms. Default 3,000. */
  deadlineMs?: number
  /** Keys of one statement at most. Default 1,000. */
  maxKeys?: number
}

export interface GatheredReads<Value> {
  /** undefined: no such row when the read, begun after this call, was made. */
  get(key: string): Promise<Value | undefined>
  /** Values with these identities that are being read right now are read again. */
  changed(identities: readonly string[]): void
  /** The same for everything that is being read. */
  allChanged(): void
}

interface Waiting<Value> {
  promise: Promise<Value | undefined>
  resolve(value: Value | undefined): void
  reject(error: unknown): void
}

interface Flight {
  readonly changed: Set<string>
  all: boolean
}

export function createGatheredReads<Value>(options: GatheredReadsOptions<Value>): GatheredReads<Value> {
  const { deadlineMs = 3_000, maxKeys = 1_000 } = options
  const waiting = new Map<string, Waiting<Value>>()
  let flight: Flight | null = null

  function get(key: string): Promise<Value | undefined> {
    const known = waiting.get(key)
    if (known !== undefined) return known.promise
    const entry = Promise.withResolvers<Value | undefined>()
    waiting.set(key, entry)
    if (flight === null) void drain()
    return entry.promise
  }

  async function drain(): Promise<void> {
    while (waiting.size > 0) {
      const batch = new Map([...waiting].slice(0, maxKeys))
      for (const key of batch.keys()) waiting.delete(key)
      flight = { changed: new Set(), all: false }
      await readBatch(batch, flight)
    }
    flight = null
  }

  async function readBatch(batch: Map<string, Waiting<Value>>, current: Flight): Promise<void> {
    try {
      const found = await withDeadline(options.clock, deadlineMs, options.read([...batch.keys()]))
      for (const [key, entry] of batch) settle(key, entry, found.get(key), current)
    } catch (error) {
      for (const entry of batch.values()) entry.reject(error)
    }
  }

  function settle(
    key: string,
    entry: Waiting<Value>,
    value: Value | Error | undefined,
    current: Flight,
  ): void {
    if (value === undefined) entry.resolve(undefined)
    else if (value instanceof Error) entry.reject(value)
    else if (current.all || current.changed.has(options.identity(value))) again(key, entry)
    else {
      options.keep(value)
      entry.resolve(value)
    }
  }

  function again(key: string, entry: Waiting<Value>): void {
    const joined = waiting.get(key)
    if (joined === undefined) waiting.set(key, entry)
    else joined.promise.then(entry.resolve, entry.reject)
  }

  return {
    get,
    changed(identities) {
      for (const identity of identities) flight?.changed.add(identity)
    },
    allChanged() {
      if (flight !== null) flight.all = true
    },
  }
}
