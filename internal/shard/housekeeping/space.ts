/** How full a log is, and how much of a journal may be taken by what is carried into it. */
import type { Log, LogState } from '../broker.ts'
import type { HousekeepingLimits } from './limits.ts'

/**
 * Of the journal's `max_bytes`, for all kept items: what is kept has to be carried forward before the journal can be
 * cut, and that takes room.
 */
const KEPT_SHARE = 0.5
/**
 * Of the journal's `max_bytes`, with the next snapshot: keeps leave the rest to seals, results and snapshots. Carrying
 * forward may take more of it, for only that makes room again.
 */
const SPACE = { keep: 0.8, carryForward: 0.985 }
/** Of the journal's `max_bytes`: more than a keep record takes, but for one of a single item (`keeping.ts`). */
const LEAST_CARRIED = 1 / 32

export async function nearlyFull(log: Log, limits: HousekeepingLimits): Promise<boolean> {
  return isCrowded(await log.state(), limits)
}

export function isCrowded({ bytes, maxBytes }: LogState, { fullShare }: HousekeepingLimits): boolean {
  return maxBytes > 0 && bytes > maxBytes * fullShare
}

/** Bytes that may be kept in the journal beside `kept` bytes, when `used` are taken with the next snapshot. */
export function spaceForKeeps({ maxBytes }: LogState, kept: number, used: number): number {
  return maxBytes > 0
    ? Math.min(maxBytes * KEPT_SHARE - kept, maxBytes * SPACE.keep - used)
    : Number.POSITIVE_INFINITY
}

/** Bytes that may be carried forward, when `used` are taken with the next snapshot. */
export function spaceToCarryForward({ bytes, maxBytes }: LogState, used: number): number {
  if (maxBytes <= 0) return Number.POSITIVE_INFINITY
  const full = maxBytes * SPACE.carryForward
  // The oldest keep goes in any case: the purge behind it gives as much back.
  return Math.min(full - bytes, Math.max(full - used, maxBytes * LEAST_CARRIED))
}
