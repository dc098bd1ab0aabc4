/**
 * Values of Secrets, read one by one as passes need them: a watch that carried all data would hold all Secrets of the cluster.
 * What was read last is kept, up to a bound, because many Buffers name the same Secret.
 */
import type { Clock } from '../../internal/runtime/clock.ts'
import type { SecretMetadata, SecretResource, SecretValues } from '../reconcile/ports.ts'
import { hasStatus } from './api-error.ts'
import type { ApiServer } from './api-server.ts'

/** Base64 characters of all values that are kept. */
const KEPT = 2_000_000
/** Of one value. What is longer is no secret or header that the service takes, and is as wrong when it is cut. */
const LONGEST = 65_536

/** The watch tells of a change within seconds. What is newer than it for longer is from before etcd was restored. */
const AHEAD_MS = 60_000

interface Kept {
  readonly secret: SecretResource
  readonly size: number
  /** Monotonic ms. */
  readonly readAt: number
}

export class SecretReader implements SecretValues {
  readonly #api: ApiServer
  /** By uid, the one that was used longest ago first. */
  readonly #kept = new Map<string, Kept>()
  readonly #clock: Clock
  #size = 0

  constructor(api: ApiServer, clock: Clock) {
    this.#api = api
    this.#clock = clock
  }

  async read({ metadata }: SecretMetadata, signal: AbortSignal): Promise<SecretResource | undefined> {
    const { namespace, name, uid, resourceVersion } = metadata
    const kept = this.#kept.get(uid)
    if (kept !== undefined && this.#isAsNew(kept, resourceVersion)) {
      this.#keep(uid, kept)
      return kept.secret
    }
    const readAt = this.#clock.monotonic()
    const secret = await this.#fetch(`/api/v1/namespaces/${namespace}/secrets/${name}`, signal)
    if (secret?.metadata.uid === uid) this.#keep(uid, { secret, size: sizeOf(secret), readAt })
    return secret
  }

  async #fetch(path: string, signal: AbortSignal): Promise<SecretResource | undefined> {
    try {
      const call = { signal, longestString: LONGEST }
      return withoutRest(await this.#api.request<SecretResource>('GET', path, call))
    } catch (error) {
      if (hasStatus(error, 404)) return undefined
      throw error
    }
  }

  /** Resource versions grow. */
  #isAsNew({ secret, readAt }: Kept, resourceVersion: string): boolean {
    const aheadBy = BigInt(secret.metadata.resourceVersion) - BigInt(resourceVersion)
    return aheadBy === 0n || (aheadBy > 0n && this.#clock.monotonic() - readAt < AHEAD_MS)
  }

  #keep(uid: string, kept: Kept): void {
    this.#drop(uid)
    this.#kept.set(uid, kept)
    this.#size += kept.size
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= KEPT) return
      this.#drop(oldest)
    }
  }

  #drop(uid: string): void {
    this.#size -= this.#kept.get(uid)?.size ?? 0
    this.#kept.delete(uid)
  }
}

/** Annotations and managed fields may be much longer than what is kept. */
function withoutRest({ metadata, data = {} }: SecretResource): SecretResource {
  const { name, namespace, uid, resourceVersion } = metadata
  return { metadata: { name, namespace, uid, resourceVersion }, data }
}

function sizeOf({ data = {} }: SecretResource): number {
  return Object.values(data).reduce((sum, value) => sum + value.length, 0)
}
