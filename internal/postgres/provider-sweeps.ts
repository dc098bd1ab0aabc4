/** How far the changes of a payment provider were read (migration 046). */

import type { ProviderSweeps } from '../billing/ports.ts'
import type { Database } from './connection.ts'

/** A node that sweeps has so long, ms; one that is still at it then may be joined by another, which does no harm. */
const CLAIM_MS = 600_000

export function createProviderSweeps(db: Database): ProviderSweeps {
  return {
    async age(provider) {
      const [row] = await db<{ age: number | null }[]>`
        SELECT (extract(epoch FROM now() - swept_until) * 1000)::float8 AS age FROM provider_sweeps
        WHERE provider = ${provider}`
      return row?.age ?? undefined
    },
    async once(provider, afterMs, sweep) {
      const [claimed] = await db<{ began: string; since: Date | null }[]>`
        INSERT INTO provider_sweeps AS s (provider, claimed_until)
        VALUES (${provider}, now() + ${CLAIM_MS}::int * interval '1 millisecond')
        ON CONFLICT (provider) DO UPDATE SET claimed_until = excluded.claimed_until
        WHERE s.claimed_until <= now()
          AND (s.swept_until IS NULL OR s.swept_until <= now() - ${afterMs}::int * interval '1 millisecond')
        RETURNING now()::text AS began, swept_until AS since`
      if (claimed === undefined) return
      let complete = false
      try {
        complete = await sweep(claimed.since?.getTime())
      } finally {
        const until = complete ? db`${claimed.began}::text::timestamptz` : db`swept_until`
        await db`
          UPDATE provider_sweeps SET swept_until = ${until}, claimed_until = now() WHERE provider = ${provider}`
      }
    },
  }
}
