/** A log that does not take what has to be appended: asked again for ever, but not in silence. */
import type { Clock } from '../../runtime/clock.ts'
import type { AppendAnswer } from '../broker.ts'

/** Told after so long, and then again as often, ms. */
const TOLD_AFTER_MS = 5_000
const TOLD_EVERY_MS = 30_000

export class Refusals {
  readonly #clock: Clock
  readonly #tell: (error: Error) => void
  readonly #prefix: string
  #tellAt: number

  constructor(clock: Clock, tell: (error: Error) => void, prefix = 'the journal does not take a commit') {
    this.#clock = clock
    this.#tell = tell
    this.#prefix = prefix
    this.#tellAt = clock.monotonic() + TOLD_AFTER_MS
  }

  /** The last answer was this one, and the append is tried again. */
  again(answer: AppendAnswer): void {
    const now = this.#clock.monotonic()
    if (now < this.#tellAt) return
    this.#tellAt = now + TOLD_EVERY_MS
    const why = answer.kind === 'unknown' ? answer.error : answer.kind
    this.#tell(new Error(`${this.#prefix}: ${why}`))
  }
}
