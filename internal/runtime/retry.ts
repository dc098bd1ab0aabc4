import type { Clock } from './clock.ts'
import { sleep } from './sleep.ts'

export interface RetryOptions {
  readonly clock: Clock
  /** From a failure to the next attempt, ms. */
  readonly pauseMs: number
  /** Fractions in [0, 1): a pause takes between half of `pauseMs` and one and a half, whole ms. Absent: all are the same. */
  readonly fraction?: () => number
  /** Told of each failure. What it throws ends the retries: rethrow an error that another attempt cannot mend. */
  readonly onFailure: (error: unknown) => void | Promise<void>
}

/** Repeats `work` until it succeeds. Rejects only with what `onFailure` throws. */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      await options.onFailure(error)
    }
    await sleep(options.clock, pauseOf(options))
  }
}

function pauseOf({ pauseMs, fraction }: RetryOptions): number {
  return fraction ? Math.round(pauseMs * (0.5 + fraction())) : pauseMs
}
