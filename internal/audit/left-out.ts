/**
 * Says in the audit of a customer how many records are missing there: a flood that hides something is itself seen. One
 * record a customer and minute tells it.
 */
import type { Clock } from '../runtime/clock.ts'

export interface LeftOutOptions {
  readonly clock: Clock
  /** Writes that so many are missing; false: it cannot be kept now, and is told again. */
  readonly write: (customerId: string, records: number) => boolean
  /** So many of all customers since the last time. */
  readonly onTold: (records: number) => void
}

export interface LeftOut {
  add(customerId: string, records: number): void
  /** Tells what was not told yet; nothing is told by itself afterwards. */
  stop(): void
}

const EVERY_MS = 60_000
/** Of more the metric alone tells. */
const MAX_CUSTOMERS = 10_000
/** Of an `integer` in Postgres. */
const MAX_COUNT = 2_147_483_647

export function createLeftOut({ clock, write, onTold }: LeftOutOptions): LeftOut {
  const missing = new Map<string, number>()
  let untold = 0
  let cancelTimer: (() => void) | undefined

  function tell(): void {
    cancelTimer = undefined
    if (untold > 0) onTold(untold)
    untold = 0
    for (const [customerId, records] of missing) if (write(customerId, records)) missing.delete(customerId)
    if (missing.size > 0) cancelTimer = clock.after(EVERY_MS, tell)
  }

  return {
    add(customerId, records) {
      untold += records
      const known = missing.get(customerId)
      if (known !== undefined || missing.size < MAX_CUSTOMERS)
        missing.set(customerId, Math.min(MAX_COUNT, (known ?? 0) + records))
      cancelTimer ??= clock.after(EVERY_MS, tell)
    },
    stop() {
      cancelTimer?.()
      tell()
      cancelTimer?.()
    },
  }
}
