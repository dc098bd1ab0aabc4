/**
 * Customers by account of the identity provider, as requests with ID tokens ask for them
 * (docs/architecture/protocol.md, "Cached configuration"). That an account is unknown is never remembered. What is
 * remembered goes with its row by the change feed, and by itself after a while; there is a bound on how much it is.
 */

import type { Clock } from '../runtime/clock.ts'
import { createGatheredReads } from '../runtime/gathered-reads.ts'
import { elapsedSince, type Moment, momentOf } from '../runtime/moment.ts'
import type { Account, AccountHolder, IdentityRows } from './ports.ts'

export interface IdentityCache {
  /** undefined: the account has no customer. Rejects while the database is away and the account is not known here. */
  customerOf(account: Account): Promise<AccountHolder | undefined>
  /** Accounts of these customers changed, or the customers were suspended or resumed: the next use reads them again. */
  changed(customerIds: readonly string[]): void
  /** Anything may have changed. */
  reset(): void
}

export interface IdentityCacheOptions {
  rows: IdentityRows
  clock: Clock
  /** Accounts remembered at most; the one read first goes first. Default 10,000: about 5 MB. */
  maxEntries?: number
  /** Default 60,000. */
  maxAgeMs?: number
}

interface Entry {
  readonly key: string
  readonly holder: AccountHolder
}

export function createIdentityCache(options: IdentityCacheOptions): IdentityCache {
  const { rows, clock, maxEntries = 10_000, maxAgeMs = 60_000 } = options
  const known = new Map<string, { holder: AccountHolder; readAt: Moment }>()

  const reads = createGatheredReads<Entry>({
    async read(keys) {
      const found = await rows.customersOf(keys.map(accountOf))
      return new Map(found.map((row) => entryOf(keyOf(row), row)))
    },
    identity: ({ holder }) => holder.customerId,
    keep,
    clock,
  })

  function keep({ key, holder }: Entry): void {
    known.delete(key)
    known.set(key, { holder, readAt: momentOf(clock) })
    if (known.size <= maxEntries) return
    const [oldest] = known.keys()
    known.delete(oldest!)
  }

  function fresh(key: string): AccountHolder | undefined {
    const entry = known.get(key)
    return entry !== undefined && elapsedSince(clock, entry.readAt) < maxAgeMs ? entry.holder : undefined
  }

  return {
    async customerOf(account) {
      const key = keyOf(account)
      return fresh(key) ?? (await reads.get(key))?.holder
    },
    changed(customerIds) {
      reads.changed(customerIds)
      // Rare: a look at each entry costs less than an index that is always kept.
      const gone = new Set(customerIds)
      for (const [key, { holder }] of known) if (gone.has(holder.customerId)) known.delete(key)
    },
    reset() {
      reads.allChanged()
      known.clear()
    },
  }
}

/** One text an account, whatever its parts hold. */
function keyOf({ issuer, subject }: Account): string {
  return JSON.stringify([issuer, subject])
}

function accountOf(key: string): Account {
  const [issuer, subject] = JSON.parse(key) as [string, string]
  return { issuer, subject }
}

function entryOf(key: string, { customerId, suspended }: AccountHolder): [string, Entry] {
  return [key, { key, holder: { customerId, suspended } }]
}
