/**
 * API keys in the memory of a process, up to a bound (docs/architecture/protocol.md, "Cached configuration"). Whoever
 * presents ever more keys of its own makes it forget the ones that were read first, and each of those costs a read.
 */

import type { KnownKey } from '../domain/model.ts'

/**
 * What the keys may take, in bytes: 32,000 keys without projects, or 1,900 with a hundred of the longest ids. A
 * process has hundreds of MB, and fewer senders at a time.
 */
const MOST_BYTES = 32_000_000
/** Of a key with its names, its secret and its places in the maps. Measured: 0.9 KB with the longest name. */
const BYTES_OF_KEY = 1_000
/** Of one that is limited to projects, for each: an id has 128 characters at most. */
const BYTES_OF_PROJECT = 160

interface Entry {
  readonly hash: string
  readonly record: KnownKey
  readonly bytes: number
  /** In plain text, once the usable key was presented again. */
  secret: string | undefined
}

export class KnownKeys {
  readonly #mostBytes: number
  readonly #byHash = new Map<string, Entry>()
  readonly #byId = new Map<string, Entry>()
  /**
   * A busy sender's key is hashed once, and not for each webhook. The secrets stand in this memory anyway, in the
   * requests that bring them, and go with their keys.
   */
  readonly #bySecret = new Map<string, KnownKey>()
  #bytes = 0

  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes
  }

  get size(): number {
    return this.#byHash.size
  }

  bySecret(secret: string): KnownKey | undefined {
    return this.#bySecret.get(secret)
  }

  byHash(hash: string): KnownKey | undefined {
    return this.#byHash.get(hash)?.record
  }

  /** In place of what is held of the key. The ones that were kept first go when all take too much. */
  keep(hash: string, read: KnownKey): void {
    const record = read.revokedAt === null ? read : bare(read)
    const bytes = BYTES_OF_KEY + BYTES_OF_PROJECT * (record.projectIds?.length ?? 0)
    this.forget(record.keyId)
    const entry: Entry = { hash, record, bytes, secret: undefined }
    this.#byHash.set(hash, entry)
    this.#byId.set(record.keyId, entry)
    this.#bytes += bytes
    while (this.#bytes > this.#mostBytes) {
      const [first] = this.#byId.keys()
      this.forget(first!)
    }
  }

  /** The secret of a key that is not revoked: it is not hashed again. Nothing when the record is not the one held. */
  keepSecret(secret: string, hash: string, record: KnownKey): void {
    const entry = this.#byHash.get(hash)
    if (entry?.record !== record) return
    entry.secret = secret
    this.#bySecret.set(secret, record)
  }

  forget(keyId: string): void {
    const entry = this.#byId.get(keyId)
    if (entry === undefined) return
    this.#byId.delete(keyId)
    this.#byHash.delete(entry.hash)
    if (entry.secret !== undefined) this.#bySecret.delete(entry.secret)
    this.#bytes -= entry.bytes
  }

  forgetAll(): void {
    this.#byId.clear()
    this.#byHash.clear()
    this.#bySecret.clear()
    this.#bytes = 0
  }

  values(): KnownKey[] {
    return Array.from(this.#byHash.values(), ({ record }) => record)
  }
}

/** What a refusal needs of a revoked key. It reaches nothing, should anybody ask. */
function bare({ keyId, customerId, role, revokedAt, suspended }: KnownKey): KnownKey {
  const nothing = { name: '', keyPrefix: '', projectIds: [], createdAt: '', lastUsedAt: null }
  return { keyId, customerId, role, revokedAt, suspended, ...nothing }
}
