/** Follows the inbox from the cursor on, and hands what it reads to the intake. */
import { asError } from '../../runtime/thrown.ts'
import type { Log, LogMessage, LogState, Reading } from '../broker.ts'
import type { ReplayState } from '../held/replay.ts'
import type { ShardEvents } from '../options.ts'
import type { Intake } from './intake.ts'

export interface InboxReadingOptions extends Pick<ShardEvents, 'ended' | 'onFatal' | 'onProblem'> {
  readonly inbox: Log
  readonly intake: Intake
  readonly replay: Readonly<ReplayState>
  /** The inbox at the claim. */
  readonly head: LogState
}

export class InboxReading {
  readonly #options: InboxReadingOptions
  #reading: Reading | null = null
  #isPaused = false
  /** What was handed over is taken in turn, also from one reading to the next. */
  #taking: Promise<void> = Promise.resolve()

  constructor(options: InboxReadingOptions) {
    this.#options = options
  }

  begin(): void {
    const { intake, head, replay, ended } = this.#options
    // Nothing comes of an inbox that holds nothing above the cursor, so nothing would end the replay.
    const isEmpty = head.messages === 0 || head.lastSeq < replay.cursor
    if (isEmpty) this.#taking = this.#guarded(() => intake.reachedEnd(head.lastSeq))
    if (!ended()) this.#follow()
  }

  /** Until `goOn`. What was read and has no place yet may be lost: it is read again. */
  pause(): void {
    this.#isPaused ||= this.#reading !== null
    void this.#leave()
  }

  goOn(): void {
    if (!this.#isPaused || this.#options.ended()) return
    this.#isPaused = false
    this.#follow()
  }

  /** Nothing is taken any more once this resolves. */
  async stop(): Promise<void> {
    this.#isPaused = false
    this.#options.intake.stop()
    await this.#leave()
  }

  async #leave(): Promise<void> {
    const reading = this.#reading
    this.#reading = null
    await reading?.stop()
  }

  #follow(): void {
    const { inbox, intake, replay, onProblem } = this.#options
    const onError = (error: Error) => onProblem('reading the inbox', error)
    const take = (messages: LogMessage[]) => {
      const isOld = () => this.#reading !== reading
      this.#taking = this.#taking.then(() => this.#guarded(() => intake.take(messages, isOld)))
      return this.#taking
    }
    const reading = inbox.follow(Math.max(1, replay.cursor), take, onError)
    this.#reading = reading
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    if (this.#options.ended()) return
    await work().catch((error: unknown) => this.#options.onFatal(asError(error)))
  }
}
