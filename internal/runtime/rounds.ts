/** Work in the background that is done again and again, a round at a time. */
import type { Clock } from './clock.ts'

export interface RoundsOptions {
  readonly clock: Clock
  /** From the end of a round to the next one, ms. */
  readonly everyMs: number
  /** One round; `stopped` says that it may end early. */
  readonly round: (stopped: () => boolean) => Promise<void>
  /** A round failed; the next one tries again. */
  readonly onProblem: (error: unknown) => void
}

export class Rounds {
  readonly #options: RoundsOptions
  #round: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  #stopped = false

  constructor(options: RoundsOptions) {
    this.#options = options
  }

  /** Begins the first round at once. */
  start(): void {
    const { round, onProblem } = this.#options
    this.#round = round(() => this.#stopped)
      .catch((error: unknown) => {
        if (!this.#stopped) onProblem(error)
      })
      .finally(() => this.startLater())
  }

  /** Begins the first round after the time between two of them. */
  startLater(): void {
    const { clock, everyMs } = this.#options
    if (!this.#stopped) this.#cancelTimer = clock.after(everyMs, () => this.start())
  }

  /** Resolves when what runs is done; nothing begins afterwards. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelTimer?.()
    await this.#round
  }
}

/** Until nothing is left to do, or `stopped`. `some`: how much it did of it. Answers how much in all. */
export async function untilNone(some: () => Promise<number>, stopped: () => boolean): Promise<number> {
  let all = 0
  for (let done = 1; done > 0 && !stopped(); all += done) done = await some()
  return all
}
