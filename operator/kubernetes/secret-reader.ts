/**
 * Values of Secrets, read one by one as passes need them: a watch that carried all data would hold all Secrets of the cluster.
 * Of one that is read, only the keys that are asked for ever come into memory. What was read last is kept, up to a bound,
 * because many Buffers name the same Secret.
 */
import type { Clock } from '../../internal/runtime/clock.ts'
import { keyOf } from '../controller/ports.ts'
import type { SecretMetadata, SecretResource, SecretValues } from '../reconcile/ports.ts'
import { hasStatus } from './api-error.ts'
import type { ApiServer } from './api-server.ts'
import { ofSecret } from './kept.ts'

/** Characters of all that is kept. */
const KEPT = 2_000_000
/** What a Secret and a key of it take beside their texts, characters. */
const COST = { secret: 500, key: 100 }
/** Of one value. What is longer is no secret or header that the service takes, and is as wrong when it is cut. */
const LONGEST = 65_536
/** Keys of one Secret that are kept for several Buffers. */
const KEYS = 1_000

/** The watch tells of a change within seconds. What is newer than it for longer is from before etcd was restored. */
const AHEAD_MS = 60_000

interface Kept {
  readonly secret: SecretResource
  /** That were asked for, whether it has them or not. */
  readonly keys: ReadonlySet<string>
  readonly size: number
  /** Monotonic ms. */
  readonly readAt: number
}

export class SecretReader implements SecretValues {
  readonly #api: ApiServer
  /** By `namespace/name`, the one that was used longest ago first. */
  readonly #kept = new Map<string, Kept>()
  readonly #clock: Clock
  #size = 0

  constructor(api: ApiServer, clock: Clock) {
    this.#api = api
    this.#clock = clock
  }

  /** Characters that are kept, about. */
  get size(): number {
    return this.#size
  }

  async read(
    known: SecretMetadata,
    wanted: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<SecretResource | undefined> {
    const name = keyOf(known)
    const kept = this.#kept.get(name)
    if (kept !== undefined && wanted.isSubsetOf(kept.keys) && this.#isAsNew(kept, known)) {
      this.#keep(name, kept)
      return kept.secret
    }
    const readAt = this.#clock.monotonic()
    const keys = withThose(wanted, kept?.keys)
    const secret = await this.#fetch(known, keys, signal)
    if (secret?.metadata.uid === known.metadata.uid)
      this.#keep(name, { secret, keys, size: sizeOf(secret, keys), readAt })
    return secret
  }

  async #fetch(
    { metadata: { namespace, name } }: SecretMetadata,
    keys: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<SecretResource | undefined> {
    const path = `/api/v1/namespaces/${namespace}/secrets/${name}`
    const call = { signal, longestString: LONGEST, keeps: ofSecret(keys) }
    try {
      const { metadata, data = {} } = await this.#api.request<SecretResource>('GET', path, call)
      return { metadata, data }
    } catch (error) {
      if (hasStatus(error, 404)) return undefined
      throw error
    }
  }

  /** Resource versions grow. */
  #isAsNew({ secret, readAt }: Kept, { metadata: { uid, resourceVersion } }: SecretMetadata): boolean {
    if (secret.metadata.uid !== uid) return false
    const aheadBy = BigInt(secret.metadata.resourceVersion) - BigInt(resourceVersion)
    return aheadBy === 0n || (aheadBy > 0n && this.#clock.monotonic() - readAt < AHEAD_MS)
  }

  #keep(name: string, kept: Kept): void {
    this.#drop(name)
    this.#kept.set(name, kept)
    this.#size += kept.size
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= KEPT) return
      this.#drop(oldest)
    }
  }

  #drop(name: string): void {
    this.#size -= this.#kept.get(name)?.size ?? 0
    this.#kept.delete(name)
  }
}

/** Other Buffers want the keys that were asked for before: one read is for all of them. */
function withThose(
  wanted: ReadonlySet<string>,
  before: ReadonlySet<string> = new Set(),
): ReadonlySet<string> {
  const all = wanted.union(before)
  return all.size <= KEYS ? all : wanted
}

function sizeOf({ data = {} }: SecretResource, keys: ReadonlySet<string>): number {
  let size = COST.secret
  for (const key of keys) size += COST.key + key.length
  for (const [key, value] of Object.entries(data)) size += COST.key + key.length + value.length
  return size
}
