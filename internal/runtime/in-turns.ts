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

/** For work that is no generator: how much of it may still be done in this turn of the event loop. */
export class TurnBudget {
  readonly #clock: Clock
  readonly #most: number
  #left: number

  constructor(clock: Clock, most: number) {
    this.#clock = clock
    this.#most = most
    this.#left = most
  }

  /** So much was done. Answers whether it is time for the `next` turn. */
  spend(amount: number): boolean {
    this.#left -= amount
    return this.#left <= 0
  }

  async next(): Promise<void> {
    this.#left = this.#most
    await sleep(this.#clock, 0)
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
