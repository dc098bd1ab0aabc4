/**
 * Closes days that are over and removes what is too old to be asked for, a few rows at a time, in the background
 * (`OpenDays`). Reads are right without it, and only slower: a failure is told and left to the next round.
 */

import type { Clock } from '../runtime/clock.ts'
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

export class DayClosing {
  readonly #options: DayClosingOptions
  #round: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  #stopped = false

  constructor(options: DayClosingOptions) {
    this.#options = options
  }

  /** Begins the first round at once. */
  start(): void {
    this.#round = this.#doAll().finally(() => {
      if (this.#stopped) return
      this.#cancelTimer = this.#options.clock.after(ROUND_EVERY_MS, () => this.start())
    })
  }

  /** Resolves when what runs is done; nothing begins afterwards. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelTimer?.()
    await this.#round
  }

  async #doAll(): Promise<void> {
    const { openDays } = this.#options
    try {
      await this.#untilNone(() => openDays.close(ROWS_AT_ONCE))
      await this.#untilNone(() => openDays.prune(ROWS_AT_ONCE))
    } catch (error) {
      if (!this.#stopped) this.#options.onProblem(error)
    }
  }

  async #untilNone(some: () => Promise<number>): Promise<void> {
    for (let rows = 1; rows > 0 && !this.#stopped; ) rows = await some()
  }
}
