/** The horizon of an inbox, and the purges behind it (docs/architecture/protocol.md, "Housekeeping"). */
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../broker.ts'
import type { Intake } from '../claim/intake.ts'
import type { Duplicates } from '../held/duplicates.ts'
import type { LiveItems } from '../held/live.ts'
import type { ReplayState } from '../held/replay.ts'
import type { Journal } from '../journal/journal.ts'
import type { SeenPacks } from '../journal/seen-packs.ts'
import type { FoldState } from '../journal/state.ts'
import { AllowedPurges } from './allowed-purges.ts'
import type { HousekeepingLimits } from './limits.ts'

export interface InboxOptions {
  readonly clock: Clock
  readonly limits: Pick<HousekeepingLimits, 'purgeLagMs' | 'syncLagMs'>
  readonly inboxLog: Log
  readonly journal: Journal
  readonly state: FoldState
  readonly replay: Readonly<ReplayState>
  readonly intake: Pick<Intake, 'bytesRead'>
  readonly packs: Pick<SeenPacks, 'news'>
  readonly live: LiveItems
  readonly duplicates: Duplicates
  readonly stopped: () => boolean
}

/** At that (monotonic) time the owner had read the inbox up to `cursor`: so many bytes since its claim. */
interface Mark {
  readonly cursor: number
  readonly at: number
  readonly bytes: number
}

export class InboxKeeper {
  readonly #options: InboxOptions
  readonly #purges: AllowedPurges
  #marks: Mark[] = []

  constructor(options: InboxOptions) {
    this.#options = options
    this.#purges = new AllowedPurges(options.inboxLog, options)
  }

  /** The broker may have been away. */
  reconnected(): void {
    this.#purges.restart()
  }

  /** Raises the horizon, and purges what has been below it for long enough. */
  async step(): Promise<void> {
    this.#mark()
    await this.advanceHorizon()
    this.#allowPurge()
    await this.#purge()
  }

  async advanceHorizon(): Promise<void> {
    const { state, packs, replay, journal } = this.#options
    const seq = this.#lowestOpen()
    // A drop that waits for room must be committed before its pack counts as seen.
    if (seq <= state.horizon || journal.holdsBack) return
    // First: the next owner reads nothing below the horizon, and has to know the packs that stood there.
    const seen = packs.news(replay.cursor)
    if (seen) journal.write(seen)
    await journal.commit({ type: 'horizon', seq })
  }

  /** Bytes read from the horizon on. */
  get bytesAbove(): number {
    return this.#options.intake.bytesRead - this.#passed
  }

  /** The inbox sequence below which lies this share of the bytes read from the horizon on; undefined: not known. */
  below(share: number): number | undefined {
    const bytes = this.#passed + this.bytesAbove * share
    return this.#marks.findLast((mark) => mark.bytes <= bytes)?.cursor
  }

  /** Bytes read below the horizon. */
  get #passed(): number {
    return this.#marks.findLast((mark) => mark.cursor <= this.#options.state.horizon)?.bytes ?? 0
  }

  #mark(): void {
    const { replay, intake, clock } = this.#options
    const last = this.#marks.at(-1)
    if (last?.cursor === replay.cursor) return
    this.#marks.push({ cursor: replay.cursor, at: clock.monotonic(), bytes: intake.bytesRead })
  }

  /** Every inbox position below it is over or kept, and its record is committed. */
  #lowestOpen(): number {
    const { live, duplicates, replay } = this.#options
    return Math.min(
      live.lowestInboxSeq ?? replay.cursor,
      duplicates.lowestDropping ?? replay.cursor,
      replay.cursor,
    )
  }

  #allowPurge(): void {
    const { state, clock, limits } = this.#options
    const before = clock.monotonic() - limits.purgeLagMs
    const old = this.#marks.findLast((mark) => mark.at <= before)
    this.#purges.allow(Math.min(state.horizon, old?.cursor ?? 0))
  }

  async #purge(): Promise<void> {
    const below = await this.#purges.purge()
    const first = this.#marks.findLastIndex((mark) => mark.cursor <= below)
    this.#marks.splice(0, Math.max(0, first))
  }
}
