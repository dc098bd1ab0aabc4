/**
 * The epoch row of a shard (docs/architecture/protocol.md, "Fencing in Postgres"): an owner writes to Postgres only
 * while no higher epoch is stored, and whoever raises it waits for the writes under way.
 */

import { type Fence, FencedError } from '../shard/ports.ts'
import type { Database, Transaction } from './connection.ts'

/**
 * Bounds of an owner's transaction, ms: below the lease's 5 s, so that an owner that stopped in the middle
 * loses its lock before its successor has waited in vain.
 */
const LOCK_TIMEOUT_MS = 2_000
const STATEMENT_TIMEOUT_MS = 3_000
const IDLE_TIMEOUT_MS = 3_000

/** Stores the epoch; FencedError when a higher one is stored. Repeatable. */
export async function raiseEpoch(db: Database, fence: Fence): Promise<void> {
  const raised = await db`
    INSERT INTO shards AS s (shard, epoch) VALUES (${fence.shard}, ${fence.epoch})
    ON CONFLICT (shard) DO UPDATE SET epoch = excluded.epoch WHERE s.epoch <= excluded.epoch
    RETURNING epoch`
  if (raised.length === 0) throw fenced(fence)
}

/**
 * Runs `write` in a transaction that holds the shard's row FOR SHARE: reading it is not enough, since the
 * epoch could be raised between the check and the commit. A lower stored epoch is raised first.
 */
export async function fencedTransaction<T>(
  db: Database,
  fence: Fence,
  write: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  for (;;) {
    const done = await db.begin(async (transaction): Promise<{ result: T } | undefined> => {
      const stored = await lockEpoch(transaction, fence.shard)
      if (stored > fence.epoch) throw fenced(fence)
      return stored < fence.epoch ? undefined : { result: await write(transaction) }
    })
    if (done !== undefined) return done.result
    await raiseEpoch(db, fence)
  }
}

/** The stored epoch, -1 when there is none. Sent together with the time limits: one round trip. */
async function lockEpoch(transaction: Transaction, shard: number): Promise<number> {
  const [, rows] = await Promise.all([
    transaction`SELECT
      set_config('lock_timeout', ${`${LOCK_TIMEOUT_MS}`}, true),
      set_config('statement_timeout', ${`${STATEMENT_TIMEOUT_MS}`}, true),
      set_config('idle_in_transaction_session_timeout', ${`${IDLE_TIMEOUT_MS}`}, true)`,
    transaction<{ epoch: number }[]>`SELECT epoch FROM shards WHERE shard = ${shard} FOR SHARE`,
  ])
  return rows[0]?.epoch ?? -1
}

export function fenced(fence: Fence): FencedError {
  return new FencedError(`shard ${fence.shard}: an epoch above ${fence.epoch} is stored`)
}
