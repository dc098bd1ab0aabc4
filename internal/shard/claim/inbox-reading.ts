/** Follows the inbox from the cursor on, and hands what it reads to the intake. */
import { asError } from '../../runtime/thrown.ts'
import type { Log, LogMessage, LogState, Reading } from '../broker.ts'
import type { ReplayState } from '../held/replay.ts'
import type { Intake } from './intake.ts'

export interface InboxReadingOptions {
  readonly inbox: Log
  readonly intake: Intake
  readonly replay: Readonly<ReplayState>
  /** The inbox at the claim. */
  readonly head: LogState
  readonly ended: () => boolean
  /** An item cannot be given its place. */
  readonly onFatal: (error: Error) => void
  /** The reader survived something. */
  readonly onProblem: (what: string, error: unknown) => void
}

export class InboxReading {
  readonly #options: InboxReadingOptions
  #reading: Reading | null = null

  constructor(options: InboxReadingOptions) {
    this.#options = options
  }

  begin(): void {
    const { inbox, intake, head, replay, ended, onProblem } = this.#options
    // Nothing comes of an inbox that holds nothing above the cursor, so nothing would end the replay.
    const isEmpty = head.messages === 0 || head.lastSeq < replay.cursor
    const placed = isEmpty ? this.#guarded(() => intake.reachedEnd(head.lastSeq)) : Promise.resolve()
    if (ended()) return
    const onError = (error: Error) => onProblem('reading the inbox', error)
    const take = async (messages: LogMessage[]) => {
      await placed
      await this.#guarded(() => intake.take(messages))
    }
    this.#reading = inbox.follow(Math.max(1, replay.cursor), take, onError)
  }

  /** Nothing is taken any more once this resolves. */
  async stop(): Promise<void> {
    this.#options.intake.stop()
    await this.#reading?.stop()
    this.#reading = null
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    if (this.#options.ended()) return
    await work().catch((error: unknown) => this.#options.onFatal(asError(error)))
  }
}
