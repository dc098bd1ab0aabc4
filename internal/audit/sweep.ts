/** Retention of the audit (`PENSTOCK_AUDIT_DAYS`): older records go, some at a time. */
import type { Clock } from '../runtime/clock.ts'
import { Rounds, untilNone } from '../runtime/rounds.ts'
import type { AuditStore } from './ports.ts'

const ROUND_EVERY_MS = 10 * 60_000
/** Of one statement: some milliseconds. */
const ROWS_AT_ONCE = 1_000
const DAY_MS = 86_400_000

export interface AuditSweepOptions {
  readonly store: Pick<AuditStore, 'removeOlder'>
  /** So long a record is kept. */
  readonly days: number
  readonly clock: Clock
  /** After a round that removed something. */
  readonly onRemoved: (records: number) => void
  readonly onProblem: (error: unknown) => void
}

export function createAuditSweep({ store, days, clock, onRemoved, onProblem }: AuditSweepOptions): Rounds {
  return new Rounds({
    clock,
    onProblem,
    everyMs: ROUND_EVERY_MS,
    async round(stopped) {
      const before = clock.now() - days * DAY_MS
      const removed = await untilNone(() => store.removeOlder(before, ROWS_AT_ONCE), stopped)
      if (removed > 0) onRemoved(removed)
    },
  })
}
