/**
 * API keys by their secret, as ingest and the admin API ask for them (docs/architecture/protocol.md, "Cached
 * configuration"). Known keys are answered from memory (`known-keys.ts`), also the revoked ones: revocation is final.
 * Unknown ones are read each time, all that ask together in one statement, so a key works everywhere as soon as it is created and a
 * flood of wrong ones costs the database no more than a single caller. So are known ones that may have changed longer
 * ago than a minute.
 *
 * The last use of a key is kept here and written in one statement an interval.
 */

import type { KnownKey } from '../domain/model.ts'
import type { Clock } from '../runtime/clock.ts'
import { createFreshness } from '../runtime/freshness.ts'
import { createGatheredReads } from '../runtime/gathered-reads.ts'
import type { Moment } from '../runtime/moment.ts'
import { KnownKeys } from './known-keys.ts'
import type { ApiKeyRows } from './ports.ts'
import { hashOf, isSecret } from './secret.ts'

export interface KeyCache {
  /** A key that is known here and not revoked; undefined says nothing: `authenticate` does. */
  peek(secret: string): KnownKey | undefined
  /** undefined: unknown, malformed or revoked. Rejects while the database is away and the key is not certain here. */
  authenticate(secret: string): Promise<KnownKey | undefined>
  /** Whose key it is, when it was revoked and `authenticate` has just refused it. Asks nobody. */
  revoked(secret: string): RevokedKey | undefined
  /** Rows with these ids changed: the next use reads them again. */
  changed(keyIds: readonly string[]): void
  /** These customers were suspended or resumed: the next use of their keys reads them again. */
  customersChanged(customerIds: readonly string[]): void
  /** Anything may have changed. */
  reset(): void
  /** Every change that was committed before `at` was told. */
  caughtUp(at: Moment): void
  /** Writes the last uses; call it when no request can come any more. */
  stop(): Promise<void>
}

export type RevokedKey = Pick<KnownKey, 'keyId' | 'customerId'>

export interface KeyCacheOptions {
  rows: ApiKeyRows
  clock: Clock
  /** A failed write of last uses; they are kept for the next one. */
  onError: (error: unknown) => void
  /** Default 30,000. */
  lastUseIntervalMs?: number
}

export function createKeyCache({
  rows,
  clock,
  onError,
  lastUseIntervalMs = 30_000,
}: KeyCacheOptions): KeyCache {
  const known = new KnownKeys()
  const freshness = createFreshness(clock)
  let uses = new Map<string, number>()
  let cancelWrite: (() => void) | null = null
  let writing: Promise<void> = Promise.resolve()

  const reads = createGatheredReads<{ hash: string; record: KnownKey }>({
    async read(wanted) {
      const found = await rows.byHashes(wanted)
      return new Map([...found].map(([hash, record]) => [hash, { hash, record }]))
    },
    identity: ({ record }) => record.keyId,
    keep: ({ hash, record }) => known.keep(hash, record),
    clock,
  })

  function used(keyId: string): void {
    uses.set(keyId, clock.now())
    cancelWrite ??= clock.after(lastUseIntervalMs, () => {
      cancelWrite = null
      writing = writeUses()
    })
  }

  async function writeUses(): Promise<void> {
    const written = uses
    uses = new Map()
    if (written.size === 0) return
    try {
      await rows.markUsed(written)
    } catch (error) {
      uses = new Map([...written, ...uses])
      onError(error)
    }
  }

  function certain(hash: string): KnownKey | undefined {
    return freshness.holds() ? known.byHash(hash) : undefined
  }

  /** What is not found any more is dropped: its row was removed. */
  async function read(hash: string): Promise<KnownKey | undefined> {
    const held = known.byHash(hash)
    const found = await reads.get(hash)
    if (found === undefined && held !== undefined && known.byHash(hash) === held) known.forget(held.keyId)
    return found?.record
  }

  function usable(record: KnownKey | undefined): KnownKey | undefined {
    if (record === undefined || record.revokedAt !== null) return undefined
    used(record.keyId)
    return record
  }

  return {
    peek: (secret) => (freshness.holds() ? usable(known.bySecret(secret)) : undefined),
    async authenticate(secret) {
      if (!isSecret(secret)) return undefined
      const hash = hashOf(secret)
      const record = usable(certain(hash) ?? (await read(hash)))
      // Only of keys that work: others must not fill memory.
      if (record !== undefined) known.keepSecret(secret, hash, record)
      return record
    },
    revoked(secret) {
      const record = isSecret(secret) ? known.byHash(hashOf(secret)) : undefined
      return record?.revokedAt == null ? undefined : record
    },
    changed(keyIds) {
      reads.changed(keyIds)
      for (const keyId of keyIds) known.forget(keyId)
    },
    customersChanged(customerIds) {
      // Whose a key is that is just being read is not known yet.
      reads.allChanged()
      const changed = new Set(customerIds)
      for (const { customerId, keyId } of known.values()) if (changed.has(customerId)) known.forget(keyId)
    },
    reset() {
      reads.allChanged()
      known.forgetAll()
    },
    caughtUp: freshness.caughtUp,
    async stop() {
      cancelWrite?.()
      cancelWrite = null
      await writing
      await writeUses()
    },
  }
}
