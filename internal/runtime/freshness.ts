/**
 * Whether memory may answer by itself (docs/architecture/protocol.md, "Cached configuration"): while it is known that
 * every change was heard of that is older than a bound. Nothing is in memory at first, so the bound begins then.
 */

import type { Clock } from './clock.ts'
import { elapsedSince, type Moment, momentOf } from './moment.ts'

/** What is remembered answers for so long after the last time that all changes were known, ms. */
export const TRUSTED_MS = 60_000

export interface Freshness {
  /** Every change that was committed before `at` is known here. An earlier moment says nothing new. */
  caughtUp(at: Moment): void
  holds(): boolean
}

export function createFreshness(clock: Clock, trustedMs = TRUSTED_MS): Freshness {
  let known = momentOf(clock)
  return {
    caughtUp(at) {
      if (elapsedSince(clock, at) < elapsedSince(clock, known)) known = at
    },
    holds: () => elapsedSince(clock, known) <= trustedMs,
  }
}
