/** Moves the counters of days that are over to where they are read quickly, beside the management API. */
import { createDayClosing } from '../../internal/analytics/closing.ts'
import { createOpenDays } from '../../internal/postgres/open-days.ts'
import type { Node, Store } from './foundation.ts'

export async function startDayClosing({ lifecycle, clock, log }: Node, { db }: Store): Promise<void> {
  await lifecycle.acquire(
    'closing of days',
    () => {
      const onProblem = (error: unknown) => log.warn({ error: String(error) }, 'the closing of days waits')
      const closing = createDayClosing({ openDays: createOpenDays(db), clock, onProblem })
      closing.start()
      return closing
    },
    (it) => it.stop(),
  )
}
