/**
 * The epoch row of a shard (docs/architecture/protocol.md, "Fencing in Postgres"): an owner writes to Postgres only
 * while no higher epoch is stored, and whoever raises it waits for the writes under way.
 */

import { type CommitName, NO_COMMIT } from '../shard/journal/commit-name.ts'
import { type Fence, FencedError, type Known } from '../shard/ports.ts'
import type { Database, Transaction } from './connection.ts'

/**
 * Bounds of an owner's transaction, ms: below the lease's 5 s, so that an owner that stopped in the middle
 * loses its lock before its successor has waited in vain.
 */
const LOCK_TIMEOUT_MS = 2_000
const STATEMENT_TIMEOUT_MS = 3_000
const IDLE_TIMEOUT_MS = 3_000

/** Without a fence: by it a claim is compared with what is known before it raises the epoch. */
export async function remembered(db: Database, shard: number): Promise<Known> {
  const rows = await db<(CommitName & { of: keyof Known })[]>`
    SELECT 'claim' AS of, epoch AS seq, identity FROM shards WHERE shard = ${shard}
    UNION ALL
    SELECT 'counted', position, identity FROM projections WHERE shard = ${shard}`
  const nameOf = (which: keyof Known): CommitName => {
    const row = rows.find(({ of }) => of === which)
    return row ? { seq: row.seq, identity: row.identity } : NO_COMMIT
  }
  return { claim: nameOf('claim'), counted: nameOf('counted') }
}

/** Stores the epoch where the stored one is `known`. false: it is not, and nothing was stored. */
export async function replaceEpoch(
  db: Database,
  { shard, epoch, identity = null }: Fence,
  known: CommitName,
): Promise<boolean> {
  const replaced = await db`
    INSERT INTO shards AS s (shard, epoch, identity) VALUES (${shard}, ${epoch}, ${identity})
    ON CONFLICT (shard) DO UPDATE SET epoch = excluded.epoch, identity = excluded.identity
      WHERE s.epoch = ${known.seq} AND s.identity IS NOT DISTINCT FROM ${known.identity}
    RETURNING epoch`
  return replaced.length > 0
}

/** Stores the epoch, whatever lower one was stored; FencedError when a higher one is, or this one of another claim. Repeatable. */
export async function raiseEpoch(db: Database, fence: Fence): Promise<void> {
  const { shard, epoch, identity = null } = fence
  const raised = await db`
    INSERT INTO shards AS s (shard, epoch, identity) VALUES (${shard}, ${epoch}, ${identity})
    ON CONFLICT (shard) DO UPDATE SET epoch = excluded.epoch, identity = excluded.identity
      WHERE s.epoch < excluded.epoch
        OR (s.epoch = excluded.epoch AND s.identity IS NOT DISTINCT FROM excluded.identity)
    RETURNING epoch`
  if (raised.length === 0) throw fenced(fence)
}

/**
 * Runs `write` in a transaction that holds the shard's row FOR SHARE: reading it is not enough, since the
 * epoch could be raised between the check and the commit. A lower stored epoch is raised first: this owner's was stored
 * before, so Postgres came back from a backup, with an earlier claim of the same journal.
 */
export async function fencedTransaction<T>(
  db: Database,
  fence: Fence,
  write: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  for (;;) {
    const done = await db.begin(async (transaction): Promise<{ result: T } | undefined> => {
      const { seq, identity } = await lockEpoch(transaction, fence.shard)
      if (seq < fence.epoch) return undefined
      if (seq > fence.epoch || identity !== (fence.identity ?? null)) throw fenced(fence)
      return { result: await write(transaction) }
    })
    if (done !== undefined) return done.result
    await raiseEpoch(db, fence)
  }
}

/** The stored claim. Sent together with the time limits: one round trip. */
async function lockEpoch(transaction: Transaction, shard: number): Promise<CommitName> {
  const [, rows] = await Promise.all([
    transaction`SELECT
      set_config('lock_timeout', ${`${LOCK_TIMEOUT_MS}`}, true),
      set_config('statement_timeout', ${`${STATEMENT_TIMEOUT_MS}`}, true),
      set_config('idle_in_transaction_session_timeout', ${`${IDLE_TIMEOUT_MS}`}, true)`,
    transaction<CommitName[]>`
      SELECT epoch AS seq, identity FROM shards WHERE shard = ${shard} FOR SHARE`,
  ])
  return rows[0] ?? NO_COMMIT
}

export function fenced(fence: Fence): FencedError {
  return new FencedError(
    `shard ${fence.shard}: an epoch above ${fence.epoch}, or of another claim, is stored`,
  )
}
