/**
 * Reads of many buffers by one API key within moments, as after an outage: the first ones are single requests, the others
 * share a list of all buffers of the key. So they stay below the rate that the service allows a key
 * (docs/reference/api.md, "Limits").
 */
import type { Buffer } from '../../internal/domain/model.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { TokenBucket } from '../controller/rate-limit.ts'
import { type AdminBuffers, AdminError, type KeyHolder } from '../reconcile/ports.ts'

/** Single reads of a key: the rest of its rate is for changes. */
const SINGLE = { perSecond: 4, burst: 20 }
/** A list is shared for so long after it was begun, ms. What others change meanwhile, the next comparison finds. */
const SHARED_MS = 2_000
/** A list may be refused where a single buffer is not: single reads for so long, ms. */
const AFTER_REFUSAL_MS = 60_000
/** Lists that are there at once, asked for or kept: one may take some 50 MB. Beyond them reads are single. */
const MOST_LISTS = 4
/** Keys that are remembered. */
const KEYS = 1_000

export interface ListingAdmin extends AdminBuffers {
  /** All that the key reaches; undefined: they are too many for one answer. Rejects as `read`. */
  list(key: string, customerId: string, signal: AbortSignal): Promise<readonly Buffer[] | undefined>
}

interface OfKey {
  readonly bucket: TokenBucket
  customerId?: string
  list?: { readonly buffers: Promise<ReadonlyMap<string, Buffer>> }
  /** After a list that was refused, monotonic ms. */
  notBefore: number
  /** Buffers that this process wrote while there was the list, which may not have that. */
  readonly written: Set<string>
}

export function withCrowdReads(admin: ListingAdmin, clock: Clock): AdminBuffers {
  const keys = new Map<string, OfKey>()
  let lists = 0

  function of(key: string): OfKey {
    const found = keys.get(key)
    if (found !== undefined) return found
    if (keys.size >= KEYS) keys.clear()
    const made: OfKey = {
      bucket: new TokenBucket(clock, SINGLE),
      notBefore: Number.NEGATIVE_INFINITY,
      written: new Set(),
    }
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
    if (buffers === undefined) throw new AdminError('invalid', 'the list of buffers is too long')
    return new Map(buffers.map((buffer) => [buffer.bufferId, buffer]))
  }

  function begin(key: string, entry: OfKey, signal: AbortSignal): NonNullable<OfKey['list']> {
    entry.written.clear()
    const list = { buffers: listed(key, entry, signal) }
    entry.list = list
    lists++
    const ended = Promise.withResolvers<void>()
    clock.after(SHARED_MS, () => {
      if (entry.list === list) delete entry.list
      ended.resolve()
    })
    void Promise.allSettled([list.buffers, ended.promise]).then(() => lists--)
    return list
  }

  /** undefined: there is none to share. */
  async function shared(
    key: string,
    bufferId: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Buffer> | undefined> {
    const entry = of(key)
    if (entry.bucket.tryTake() || clock.monotonic() < entry.notBefore) return undefined
    if (entry.list === undefined && lists >= MOST_LISTS) return undefined
    const list = entry.list ?? begin(key, entry, signal)
    if (entry.written.has(bufferId)) return undefined
    try {
      return await list.buffers
    } catch (error) {
      if (entry.list === list) delete entry.list
      // A service that is away gives no single buffer either.
      if (!(error instanceof AdminError) || error.kind === 'unavailable') throw error
      entry.notBefore = clock.monotonic() + AFTER_REFUSAL_MS
      return undefined
    }
  }

  /** No pass reads the buffer meanwhile: it has one pass at a time. */
  async function writing<T>(key: string, bufferId: string, write: () => Promise<T>): Promise<T> {
    try {
      return await write()
    } finally {
      const { list, written } = of(key)
      if (list !== undefined) written.add(bufferId)
    }
  }

  return {
    async read(key, bufferId, signal, mayShare = false) {
      const buffers = mayShare ? await shared(key, bufferId, signal) : undefined
      return buffers === undefined ? admin.read(key, bufferId, signal) : buffers.get(bufferId)
    },
    create: (key, body, signal) => writing(key, String(body.bufferId), () => admin.create(key, body, signal)),
    update: (key, bufferId, patch, signal) =>
      writing(key, bufferId, () => admin.update(key, bufferId, patch, signal)),
    remove: (key, bufferId, signal) => writing(key, bufferId, () => admin.remove(key, bufferId, signal)),
    holder: (key: string, signal: AbortSignal): Promise<KeyHolder> => admin.holder(key, signal),
  }
}
