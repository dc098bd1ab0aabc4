/**
 * Closes days that are over and removes what is too old to be asked for, a few rows at a time, in the background
 * (`OpenDays`). Reads are right without it, and only slower: a failure is told and left to the next round.
 */

import type { Clock } from '../runtime/clock.ts'
import { Rounds, untilNone } from '../runtime/rounds.ts'
import type { OpenDays } from './ports.ts'

/** A round when the node starts and then each hour finds a day soon after it may be closed, ms. */
const ROUND_EVERY_MS = 3_600_000
/** Rows of one transaction: it holds their locks for well under a second. */
const ROWS_AT_ONCE = 5_000

export interface DayClosingOptions {
  openDays: OpenDays
  clock: Clock
  onProblem: (error: unknown) => void
}

export function createDayClosing({ openDays, clock, onProblem }: DayClosingOptions): Rounds {
  return new Rounds({
    clock,
    onProblem,
    everyMs: ROUND_EVERY_MS,
    async round(stopped) {
      await untilNone(() => openDays.close(ROWS_AT_ONCE), stopped)
      await untilNone(() => openDays.prune(ROWS_AT_ONCE), stopped)
    },
  })
}
