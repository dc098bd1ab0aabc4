/**
 * Retention and quota of the dead letter queue, both off unless the installation's variables say otherwise: a dead letter
 * is data that somebody was promised, so whoever runs the installation decides that it may go. What was uploaded for a
 * dead letter that nobody wrote goes anyway.
 */
import type { Clock } from '../runtime/clock.ts'
import { Rounds, untilNone } from '../runtime/rounds.ts'
import type { ExpiredDeadLetters } from './ports.ts'

const ROUND_EVERY_MS = 10 * 60_000
/** Of one transaction. */
const ROWS_AT_ONCE = 200
/** Of one transaction; each may have a body of many megabytes. */
const UPLOADS_AT_ONCE = 4
const DAY_MS = 86_400_000

export interface DeadLetterLimits {
  /** Older ones are removed. Absent: none for its age. */
  readonly retentionDays?: number
  /** So many of a customer stay, the newest. Absent: all. */
  readonly quota?: number
}

export interface DeadLetterSweepOptions {
  readonly expired: ExpiredDeadLetters
  readonly limits: DeadLetterLimits
  readonly clock: Clock
  /** After a round that removed something. */
  readonly onRemoved: (removed: RemovedDeadLetters) => void
  /** So many uploads were removed whose owners did not finish them. */
  readonly onAbandoned: (uploads: number) => void
  readonly onProblem: (error: unknown) => void
}

export interface RemovedDeadLetters {
  readonly old: number
  readonly overQuota: number
}

export function createDeadLetterSweep(options: DeadLetterSweepOptions): Rounds {
  const { expired, clock, onRemoved, onAbandoned, onProblem } = options
  return new Rounds({
    clock,
    onProblem,
    everyMs: ROUND_EVERY_MS,
    async round(stopped) {
      const abandoned = await untilNone(() => expired.removeAbandoned(UPLOADS_AT_ONCE), stopped)
      if (abandoned > 0) onAbandoned(abandoned)
      const removed = await removeExpired(options, stopped)
      if (removed.old + removed.overQuota > 0) onRemoved(removed)
    },
  })
}

async function removeExpired(
  { expired, limits, clock }: DeadLetterSweepOptions,
  stopped: () => boolean,
): Promise<RemovedDeadLetters> {
  const { retentionDays, quota } = limits
  const removed = { old: 0, overQuota: 0 }
  if (retentionDays !== undefined) {
    const before = clock.now() - retentionDays * DAY_MS
    removed.old = await untilNone(() => expired.removeOlder(before, ROWS_AT_ONCE), stopped)
  }
  if (quota !== undefined)
    removed.overQuota = await untilNone(() => expired.removeBeyond(quota, ROWS_AT_ONCE), stopped)
  return removed
}
