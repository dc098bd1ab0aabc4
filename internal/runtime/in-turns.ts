/** Long work in slices: whatever else shares the event loop has its turn after each. */
import type { Clock } from './clock.ts'
import { sleep } from './sleep.ts'

/**
 * Runs `work` to its end, and answers what it returns. Each yield ends a slice: `take` has it, and the next slice follows in
 * another turn. Rejects as `work` or `take`.
 */
export async function inTurns<Slice, Result>(
  clock: Clock,
  work: Generator<Slice, Result>,
  take: (slice: Slice) => Promise<void> | void = () => {},
): Promise<Result> {
  for (let next = work.next(); ; next = work.next()) {
    if (next.done) return next.value
    await take(next.value)
    await sleep(clock, 0)
  }
}

/** As `inTurns`, in this turn. */
export function atOnce<Slice, Result>(
  work: Generator<Slice, Result>,
  take: (slice: Slice) => void = () => {},
): Result {
  for (let next = work.next(); ; next = work.next()) {
    if (next.done) return next.value
    take(next.value)
  }
}
