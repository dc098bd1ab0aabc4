/** Counts rows whose key is missing, in the background: neither a request nor a question for the health waits for it. */
import { rowsWithoutKey } from '../../internal/postgres/secret-keys.ts'
import { Rounds } from '../../internal/runtime/rounds.ts'
import type { SecretTelemetry } from '../../internal/telemetry/secret-telemetry.ts'
import type { Node, Store } from './foundation.ts'

const ROUND_EVERY_MS = 30_000

/** Whether no row lacked its key when they were counted last; true before. */
export async function startSecretWatch(
  { lifecycle, clock, log }: Node,
  { db, box }: Store,
  telemetry: SecretTelemetry,
): Promise<() => boolean> {
  let complete = true
  await lifecycle.acquire(
    'count of rows without their key',
    () => {
      const rounds = new Rounds({
        clock,
        everyMs: ROUND_EVERY_MS,
        onProblem: (error) => log.warn({ error: String(error) }, 'the count of rows without their key waits'),
        async round() {
          const missing = await rowsWithoutKey(db, box.keyIds)
          complete = missing.length === 0
          telemetry.rowsWithoutKey(missing)
        },
      })
      rounds.start()
      return rounds
    },
    (it) => it.stop(),
  )
  return () => complete
}
