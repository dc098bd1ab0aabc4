/**
 * Reads of many buffers by one API key within moments, as after an outage: the first ones are single requests, the others
 * share a list of all buffers of the key. So they stay below the rate that the service allows a key
 * (docs/reference/api.md, "Limits").
 */
import type { Buffer } from '../../internal/domain/model.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { TokenBucket } from '../controller/rate-limit.ts'
import type { AdminBuffers, KeyHolder } from '../reconcile/ports.ts'

/** Single reads of a key: the rest of its rate is for changes. */
const SINGLE = { perSecond: 4, burst: 20 }
/** A list is shared for so long after it was begun, ms. What others change meanwhile, the next comparison finds. */
const SHARED_MS = 2_000
/** A list may be too large, or refused where a single buffer is not: single reads for so long, ms. */
const AFTER_FAILURE_MS = 60_000
/** Keys that are remembered. */
const KEYS = 1_000

export interface ListingAdmin extends AdminBuffers {
  /** All that the key reaches. Rejects as `read`. */
  list(key: string, customerId: string, signal: AbortSignal): Promise<readonly Buffer[]>
}

interface OfKey {
  readonly bucket: TokenBucket
  customerId?: string
  list?: { readonly begunAt: number; readonly buffers: Promise<ReadonlyMap<string, Buffer>> }
  /** After a list that failed, monotonic ms. */
  notBefore: number
  /** Of this process: a list from before it knows nothing of it. Monotonic ms. */
  wroteAt: number
}

export function withCrowdReads(admin: ListingAdmin, clock: Clock): AdminBuffers {
  const keys = new Map<string, OfKey>()

  function of(key: string): OfKey {
    const found = keys.get(key)
    if (found !== undefined) return found
    if (keys.size >= KEYS) keys.clear()
    const never = Number.NEGATIVE_INFINITY
    const made = { bucket: new TokenBucket(clock, SINGLE), wroteAt: never, notBefore: never }
    keys.set(key, made)
    return made
  }

  async function listed(
    key: string,
    entry: OfKey,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Buffer>> {
    entry.customerId ??= (await admin.holder(key, signal)).customerId
    const buffers = await admin.list(key, entry.customerId, signal)
    return new Map(buffers.map((buffer) => [buffer.bufferId, buffer]))
  }

  /** undefined: there is none to share. */
  async function shared(key: string, signal: AbortSignal): Promise<ReadonlyMap<string, Buffer> | undefined> {
    const entry = of(key)
    const now = clock.monotonic()
    if (entry.bucket.tryTake() || entry.wroteAt >= now - SHARED_MS || now < entry.notBefore) return undefined
    if (entry.list === undefined || entry.list.begunAt < now - SHARED_MS)
      entry.list = { begunAt: now, buffers: listed(key, entry, signal) }
    try {
      return await entry.list.buffers
    } catch (error) {
      delete entry.list
      entry.notBefore = clock.monotonic() + AFTER_FAILURE_MS
      throw error
    }
  }

  async function writing<T>(key: string, write: () => Promise<T>): Promise<T> {
    const entry = of(key)
    entry.wroteAt = Number.POSITIVE_INFINITY
    try {
      return await write()
    } finally {
      entry.wroteAt = clock.monotonic()
      delete entry.list
    }
  }

  return {
    async read(key, bufferId, signal) {
      const buffers = await shared(key, signal)
      return buffers === undefined ? admin.read(key, bufferId, signal) : buffers.get(bufferId)
    },
    create: (key, body, signal) => writing(key, () => admin.create(key, body, signal)),
    update: (key, bufferId, patch, signal) => writing(key, () => admin.update(key, bufferId, patch, signal)),
    remove: (key, bufferId, signal) => writing(key, () => admin.remove(key, bufferId, signal)),
    holder: (key: string, signal: AbortSignal): Promise<KeyHolder> => admin.holder(key, signal),
  }
}
