/**
 * Suspended customers (docs/decisions/0040-suspended-customers.md): the state of the customer, and its copy in the rows
 * of buffers, which follows in bounded transactions.
 */

import type { Suspension, SuspensionStore } from '../accounts/ports.ts'
import { refusingWhenAway } from './availability.ts'
import type { Database, Transaction } from './connection.ts'

/** Of one transaction: each takes a number of the change feed, whose lock others wait for. */
const BUFFERS_AT_ONCE = 200

export function createSuspensionStore(db: Database, buffersAtOnce = BUFFERS_AT_ONCE): SuspensionStore {
  return refusingWhenAway<SuspensionStore>({
    set: (customerId, suspended) => setSuspended(db, customerId, suspended),
    markBuffers: (customerId) => markBuffers(db, customerId, buffersAtOnce),
  })
}

function setSuspended(db: Database, customerId: string, suspended: boolean): Promise<Suspension | undefined> {
  return db.begin(async (transaction) => {
    // Waits for creations and marks under way. What begins later sees the new state.
    await transaction`SELECT pg_advisory_xact_lock(hashtextextended('suspension ' || ${customerId}, 0))`
    const [known] = await transaction`SELECT 1 FROM customers WHERE customer_id = ${customerId}`
    if (known === undefined) return undefined
    const changed = suspended
      ? await suspend(transaction, customerId)
      : await transaction`
          UPDATE suspensions SET resumed_at = clock_timestamp()
          WHERE customer_id = ${customerId} AND resumed_at IS NULL RETURNING 1`
    const [since] = await transaction<{ at: Date }[]>`
      SELECT suspended_at AS at FROM suspensions WHERE customer_id = ${customerId} AND resumed_at IS NULL`
    return { changed: changed.length > 0, suspendedAt: since?.at.getTime() ?? null }
  })
}

function suspend(transaction: Transaction, customerId: string) {
  return transaction`
    INSERT INTO suspensions AS s (customer_id, suspended_at) VALUES (${customerId}, clock_timestamp())
    ON CONFLICT (customer_id) DO UPDATE SET suspended_at = excluded.suspended_at, resumed_at = NULL
    WHERE s.resumed_at IS NOT NULL RETURNING 1`
}

/** Deleted ones too: what they hold would still go out. Locks in the order of uids, as the owners of shards do. */
function markBuffers(db: Database, customerId: string, limit: number): Promise<number> {
  return db.begin(async (transaction) => {
    // The state cannot change before these rows have it: else a slow writer could leave the earlier one behind.
    await transaction`SELECT hold_suspension(${customerId})`
    const [state] = await transaction<
      { suspended: boolean }[]
    >`SELECT is_suspended(${customerId}) AS suspended`
    const suspended = state?.suspended ?? false
    const { count } = await transaction`
      WITH other AS (
        (SELECT uid FROM buffers
          WHERE customer_id = ${customerId} AND deleted_at IS NULL AND suspended <> ${suspended} LIMIT ${limit})
        UNION ALL
        (SELECT uid FROM buffers
          WHERE customer_id = ${customerId} AND deleted_at IS NOT NULL AND suspended <> ${suspended} LIMIT ${limit})
      ), locked AS (
        SELECT uid FROM buffers WHERE uid IN (SELECT uid FROM other) ORDER BY uid FOR NO KEY UPDATE
      )
      UPDATE buffers b SET suspended = ${suspended} FROM locked WHERE b.uid = locked.uid`
    return count
  })
}
