/**
 * Keeps both logs short (docs/architecture/protocol.md, "Housekeeping"): the horizon advances, what lags behind it is kept in the journal,
 * snapshots let the journal be cut, what holds it is carried forward. Each step runs by itself, so none waits for what another needs. A
 * purge is true whoever sends it, because it follows a committed record.
 */
import { messageOf } from '../../runtime/thrown.ts'
import type { KnownSnapshot } from '../claim/journal-reading.ts'
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
export interface FoundJournal {
  readonly snapshot: KnownSnapshot | null
  /** Bytes of the commits behind it. */
  readonly bytesBehind: number
}

export class Housekeeping {
  readonly #options: HousekeepingOptions
  readonly #inbox: InboxKeeper
  readonly #cut: Cut
  readonly #steps: readonly Step[]
  #stopped = false

  constructor(options: HousekeepingOptions, { snapshot, bytesBehind }: FoundJournal) {
    this.#options = options
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
    this.#steps = works.map((work) => {
      const failures = new Failures(options)
      return new Step(() => this.#guarded(work, failures))
    })
    for (const step of this.#steps) this.#arm(step)
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

  #arm(step: Step): void {
    if (this.#stopped) return
    step.cancel = this.#options.clock.after(this.#options.limits.everyMs, () => {
      void step.again().then(() => this.#arm(step))
    })
  }

  async #guarded(work: () => Promise<void>, failures: Failures): Promise<void> {
    if (this.#stopped || this.#options.replay.replaying) return
    await work().catch((error: unknown) => {
      if (!this.#stopped && !(error instanceof JournalClosedError)) failures.tell(error)
    })
  }
}

/** Of one step, which is tried again each second: the same failure is told every 30 s. */
class Failures {
  readonly #options: Pick<HousekeepingOptions, 'clock' | 'onProblem'>
  #told: { readonly message: string; readonly at: number } | null = null

  constructor(options: Pick<HousekeepingOptions, 'clock' | 'onProblem'>) {
    this.#options = options
  }

  tell(error: unknown): void {
    const { clock, onProblem } = this.#options
    const [message, at] = [messageOf(error), clock.monotonic()]
    if (this.#told?.message === message && at < this.#told.at + TOLD_EVERY_MS) return
    this.#told = { message, at }
    onProblem('housekeeping', error)
  }
}

/** What is never done twice at once. */
class Step {
  cancel: () => void = () => {}
  readonly #work: () => Promise<void>
  #running: Promise<void> = Promise.resolve()

  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Once more, after what runs. */
  again(): Promise<void> {
    this.#running = this.#running.then(this.#work)
    return this.#running
  }
}
