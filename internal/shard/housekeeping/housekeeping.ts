/**
 * Keeps both logs short (docs/architecture/protocol.md, "Housekeeping"): the horizon advances, what lags behind it is kept in the journal,
 * snapshots let the journal be cut, what holds it is carried forward. Each step runs by itself, so none waits for what another needs. A
 * purge is true whoever sends it, because it follows a committed record.
 */
import { messageOf } from '../../runtime/thrown.ts'
import type { JournalReading } from '../claim/journal-reading.ts'
import { JournalClosedError } from '../journal/journal.ts'
import { Carrying } from './carrying.ts'
import { Cut } from './cut.ts'
import { InboxKeeper } from './inbox.ts'
import { Keeping } from './keeping.ts'
import type { HousekeepingOwner } from './owner.ts'
import { Snapshots } from './snapshots.ts'

/** The same failure of a step is told so often, ms. */
const TOLD_EVERY_MS = 30_000

export type HousekeepingOptions = Omit<HousekeepingOwner, 'stopped'>

/** The journal as the claim found it. */
export type FoundJournal = Pick<JournalReading, 'snapshot' | 'bytesBehind'>

export class Housekeeping {
  readonly #inbox: InboxKeeper
  readonly #cut: Cut
  readonly #steps: readonly Step[]
  #stopped = false

  constructor(options: HousekeepingOptions, { snapshot, bytesBehind }: FoundJournal) {
    const owner = { ...options, stopped: () => this.#stopped }
    const inbox = new InboxKeeper(owner)
    const cut = new Cut({ ...owner, onMissing: () => snapshots.missed() }, snapshot)
    const snapshots = new Snapshots({ ...owner, cut }, bytesBehind)
    const keeping = new Keeping({ ...owner, inbox })
    const carrying = new Carrying({ ...owner, cut })
    this.#inbox = inbox
    this.#cut = cut
    const look = async () => {
      // The broker is asked rarely while there is room, and each time while there is none.
      if (options.journal.mayHaveRoom) await options.journal.look()
    }
    const works = [
      () => inbox.step(),
      () => keeping.step(),
      () => snapshots.step(),
      () => carrying.step(),
      () => cut.step(),
      look,
    ]
    this.#steps = works.map((work) => new Step(owner, work))
  }

  /** Nothing is begun afterwards. */
  stop(): void {
    this.#stopped = true
    for (const step of this.#steps) step.cancel()
  }

  /** The broker may have been away. */
  reconnected(): void {
    this.#inbox.reconnected()
    this.#cut.reconnected()
  }

  /** All steps now, one after the other, beside those of the timers. */
  async round(): Promise<void> {
    for (const step of this.#steps) await step.again()
  }
}

/** What is done again and again, and never twice at once. */
class Step {
  cancel: () => void = () => {}
  readonly #owner: HousekeepingOwner
  readonly #work: () => Promise<void>
  #running: Promise<void> = Promise.resolve()
  #told: { readonly message: string; readonly at: number } | null = null

  constructor(owner: HousekeepingOwner, work: () => Promise<void>) {
    this.#owner = owner
    this.#work = work
    this.#arm()
  }

  /** Once more, after what runs. */
  again(): Promise<void> {
    this.#running = this.#running.then(() => this.#once())
    return this.#running
  }

  #arm(): void {
    const { clock, limits, stopped } = this.#owner
    if (stopped()) return
    this.cancel = clock.after(limits.everyMs, () => {
      void this.again().then(() => this.#arm())
    })
  }

  async #once(): Promise<void> {
    const { replay, stopped } = this.#owner
    if (stopped() || replay.replaying) return
    await this.#work().catch((error: unknown) => {
      if (!stopped() && !(error instanceof JournalClosedError)) this.#tell(error)
    })
  }

  /** It is tried again each second: the same failure is told every 30 s. */
  #tell(error: unknown): void {
    const { clock, onProblem } = this.#owner
    const [message, at] = [messageOf(error), clock.monotonic()]
    if (this.#told?.message === message && at < this.#told.at + TOLD_EVERY_MS) return
    this.#told = { message, at }
    onProblem('housekeeping', error)
  }
}
