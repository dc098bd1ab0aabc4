/**
 * How far the changes of a payment provider were read (migration 046). The lock of an open transaction is the claim of a
 * node: it ends with the connection, and so with the node. `claimed_until` is unused; nodes of an earlier version write it.
 */

import type { ProviderSweeps } from '../billing/ports.ts'
import type { Database, Transaction } from './connection.ts'

/** A stopped node keeps its connection. Its claim ends after this, ms: another node may join, which does no harm. */
const CLAIM_MS = 600_000

type Sweep = Parameters<ProviderSweeps['once']>[2]

interface Claim {
  /** Of the sweep, by Postgres' clock and in its own words. */
  readonly began: string
  readonly since: Date | null
}

export function createProviderSweeps(db: Database): ProviderSweeps {
  return {
    async age(provider) {
      const [row] = await db<{ age: number | null }[]>`
        SELECT (extract(epoch FROM now() - swept_until) * 1000)::float8 AS age FROM provider_sweeps
        WHERE provider = ${provider}`
      return row?.age ?? undefined
    },
    async once(provider, afterMs, sweep) {
      let sweeping: Promise<void> | undefined
      const claiming = db.begin(async (transaction) => {
        if (!(await isFree(transaction, provider))) return
        const claim = await claimOf(transaction, provider, afterMs)
        if (claim === undefined) return
        sweeping = carryOut(db, provider, claim, sweep)
        await sweeping
      })
      // A claim that is lost lets another node join. The sweep goes on.
      await claiming.catch((error) => {
        if (sweeping === undefined) throw error
      })
      await sweeping
    },
  }
}

/** The transaction keeps the lock and no snapshot, so a long sweep holds up no vacuum. */
async function isFree(transaction: Transaction, provider: string): Promise<boolean> {
  const [lock] = await transaction<{ taken: boolean }[]>`
    SELECT pg_try_advisory_xact_lock(hashtextextended('provider sweep ' || ${provider}, 0)) AS taken,
      set_config('idle_in_transaction_session_timeout', ${`${CLAIM_MS}`}, true)`
  return lock?.taken ?? false
}

/** undefined: it is not due. In a statement behind the lock, so that it sees what the last holder wrote. */
async function claimOf(
  transaction: Transaction,
  provider: string,
  afterMs: number,
): Promise<Claim | undefined> {
  const [claim] = await transaction<Claim[]>`
    SELECT now()::text AS began, swept_until AS since FROM (VALUES (1)) AS one
    LEFT JOIN provider_sweeps ON provider = ${provider}
    WHERE swept_until IS NULL OR swept_until <= now() - ${afterMs}::int * interval '1 millisecond'`
  return claim
}

async function carryOut(
  db: Database,
  provider: string,
  { began, since }: Claim,
  sweep: Sweep,
): Promise<void> {
  if (!(await sweep(since?.getTime()))) return
  await db`
    INSERT INTO provider_sweeps AS s (provider, swept_until) VALUES (${provider}, ${began}::text::timestamptz)
    ON CONFLICT (provider) DO UPDATE SET swept_until = greatest(s.swept_until, excluded.swept_until)`
}
