/**
 * What follows from how the service tells that a buffer stands, without asking it: whether a pass has to look, and the counts
 * of the status.
 */
import { isDeepStrictEqual } from 'node:util'
import type { BufferStatus } from '../resource.ts'
import type { Remembered } from './memory.ts'
import type { BufferState } from './ports.ts'
import { timeText } from './texts.ts'

/** Counts alone are written to a status so often at most, ms. */
export const COUNTS_EVERY_MS = 60_000

/** Whether the buffer is not as a pass last saw it. `state` null: it is not there. */
export function isNews(
  { seen }: Pick<Remembered, 'seen'>,
  status: BufferStatus | undefined,
  state: BufferState | null,
): boolean {
  const wasThere = seen !== undefined || status?.ingestPath !== undefined
  if (state === null || !wasThere) return wasThere !== (state !== null)
  // A process that has not looked yet believes the status.
  if (seen === undefined) return status?.enabled !== state.enabled
  if (state.updatedAt !== seen.updatedAt) return state.updatedAt > seen.updatedAt
  return state.enabled !== seen.enabled || state.pausedAt !== seen.pausedAt
}

/** Only of a buffer that is the resource's own. */
export function withCounts(status: BufferStatus, state: BufferState | null | undefined): BufferStatus {
  if (state == null || status.ingestPath === undefined) return status
  const { lastDeadLetterTime: _, ...rest } = status
  const { consecutiveDlqCount, deadLetters, lastDeadLetterAt } = state
  return {
    ...rest,
    consecutiveDlqCount,
    deadLetters,
    ...(lastDeadLetterAt !== undefined && { lastDeadLetterTime: timeText(lastDeadLetterAt) }),
  }
}

/** But for the counts. `before` undefined: nothing was told yet. */
export function isSameState(before: BufferState | null | undefined, state: BufferState | null): boolean {
  if (before == null || state === null) return before === state
  return (
    before.updatedAt === state.updatedAt &&
    before.enabled === state.enabled &&
    before.pausedAt === state.pausedAt
  )
}

export function hasOtherCounts(
  status: BufferStatus | undefined,
  state: BufferState | null | undefined,
): boolean {
  return status !== undefined && !isDeepStrictEqual(withCounts(status, state), status)
}
