/** Removes dead letters that the installation lets go, and abandoned uploads, beside the management API. */
import { createDeadLetterSweep } from '../../internal/dlq/sweep.ts'
import { createExpiredDeadLetters } from '../../internal/postgres/expired-dead-letters.ts'
import type { Node, Store } from './foundation.ts'

export async function startDeadLetterSweep(
  { lifecycle, clock, log, config }: Node,
  { db }: Store,
): Promise<void> {
  await lifecycle.acquire(
    'sweep of dead letters',
    () => {
      const sweep = createDeadLetterSweep({
        expired: createExpiredDeadLetters(db),
        limits: config.deadLetters,
        clock,
        onRemoved: (removed) => log.info({ ...removed }, 'dead letters removed'),
        onAbandoned: (uploads) => log.info({ uploads }, 'abandoned uploads removed'),
        onProblem: (error) => log.warn({ error: String(error) }, 'the removal of dead letters waits'),
      })
      sweep.start()
      return sweep
    },
    (it) => it.stop(),
  )
}
