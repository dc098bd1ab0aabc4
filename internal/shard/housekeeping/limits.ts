import { PART_BYTES } from '../archive/snapshot-archive.ts'
import type { Log, LogState } from '../broker.ts'

export interface HousekeepingLimits {
  /** Between two rounds, ms. */
  readonly everyMs: number
  /** Purges of the inbox stay so far behind (ms): behind all retries of an append. */
  readonly purgeLagMs: number
  /** The broker has on disk what it acknowledged so long ago, ms; 0: it always has. Purges follow what is on disk. */
  readonly syncLagMs: number
  /**
   * What is over above the horizon is carried around when it outweighs what is live so many times. While it is carried
   * it stands in both logs, so 1.5 is what keeps them together below four times what is live …
   */
  readonly keepRatio: number
  /** … and is at least so large, bytes. */
  readonly keepBytes: number
  /** A snapshot is due when the journal grew by the size of the last one, at least by this, bytes. */
  readonly snapshotBytes: number
  /** Of one part of a snapshot, bytes. */
  readonly partBytes: number
  /** Share of a stream's `max_bytes` from which on housekeeping does not wait for the other limits. */
  readonly fullShare: number
}

/** All that do not depend on the broker. */
export const HOUSEKEEPING_LIMITS: Omit<HousekeepingLimits, 'syncLagMs'> = {
  everyMs: 1_000,
  purgeLagMs: 30_000,
  keepRatio: 1.5,
  keepBytes: 32 * 1024 * 1024,
  snapshotBytes: 1024 * 1024,
  partBytes: PART_BYTES,
  fullShare: 0.6,
}

export async function nearlyFull(log: Log, limits: Pick<HousekeepingLimits, 'fullShare'>): Promise<boolean> {
  return isCrowded(await log.state(), limits)
}

export function isCrowded(
  { bytes, maxBytes }: LogState,
  { fullShare }: Pick<HousekeepingLimits, 'fullShare'>,
): boolean {
  return maxBytes > 0 && bytes > maxBytes * fullShare
}
