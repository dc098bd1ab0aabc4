/**
 * Keeps both logs short (docs/architecture/protocol.md, "Housekeeping"): the horizon advances, what lags behind it is
 * carried into the journal, snapshots let the journal be cut, purges follow what is committed. A purge is true
 * whoever sends it, because it follows a committed record.
 */
import type { Clock } from '../../runtime/clock.ts'
import type { Projector } from '../batches/projector.ts'
import type { Log, LogState } from '../broker.ts'
import type { Intake } from '../claim/intake.ts'
import type { Duplicates } from '../held/duplicates.ts'
import type { LiveItems } from '../held/live.ts'
import type { PackMemory } from '../held/pack-memory.ts'
import type { PayloadCache } from '../held/payload-cache.ts'
import type { ReplayState } from '../held/replay.ts'
import { type Journal, JournalClosedError } from '../journal/journal.ts'
import type { FoldState } from '../journal/state.ts'
import { AllowedPurges } from './allowed-purges.ts'
import { type Carried, carry } from './keeping.ts'
import type { HousekeepingLimits } from './limits.ts'
import { type FoundJournal, Snapshots } from './snapshots.ts'
import { isCrowded, nearlyFull, spaceForKeeps, spaceToCarryForward } from './space.ts'

/**
 * In a crowded inbox a keep is due as soon as what is over above the horizon is this part of what is live: else an
 * inbox of which more than half is held would stay full, whatever passes through the rest.
 */
const CROWDED_RATIO = 0.25
/** A full journal waits so long for the position of the counters after a claim, and each snapshot for the counters, ms. */
const COUNTED_MS = 10_000

export interface HousekeepingOptions {
  readonly clock: Clock
  readonly limits: HousekeepingLimits
  readonly inboxLog: Log
  readonly journalLog: Log
  readonly journal: Journal
  readonly state: FoldState
  readonly replay: Readonly<ReplayState>
  readonly intake: Pick<Intake, 'bytesRead'>
  readonly packs: Pick<PackMemory, 'news'>
  readonly live: LiveItems
  readonly duplicates: Duplicates
  readonly payloads: PayloadCache
  readonly projector: Projector
  readonly onProblem: (what: string, error: unknown) => void
}

/** At that (monotonic) time the owner had read the inbox up to `cursor`: so many bytes since its claim. */
interface Mark {
  readonly cursor: number
  readonly at: number
  readonly bytes: number
}

export class Housekeeping {
  readonly #options: HousekeepingOptions
  #marks: Mark[] = []
  readonly #inboxPurges: AllowedPurges
  readonly #journalPurges: AllowedPurges
  #purgedInbox = 0
  #purgedJournal = 0
  readonly #snapshots: Snapshots
  readonly #claimedAt: number
  #cancel: (() => void) | null = null
  #cancelPurges: (() => void) | null = null
  #running: Promise<void> | null = null
  #stopped = false

  constructor(options: HousekeepingOptions, found: FoundJournal) {
    const { clock, limits } = options
    this.#options = options
    this.#inboxPurges = new AllowedPurges(clock, limits.syncLagMs)
    this.#journalPurges = new AllowedPurges(clock, limits.syncLagMs)
    this.#claimedAt = clock.monotonic()
    this.#snapshots = new Snapshots({ ...options, stopped: () => this.#stopped }, found)
    this.#arm()
    if (limits.syncLagMs > 0) this.#armPurges()
  }

  /** Nothing is begun afterwards. */
  stop(): void {
    this.#stopped = true
    this.#cancel?.()
    this.#cancelPurges?.()
  }

  /** One round now, beside those of the timer. */
  async round(): Promise<void> {
    while (this.#running) await this.#running
    this.#running = this.#round()
      .catch((error: unknown) => this.#tell(error))
      .finally(() => {
        this.#running = null
      })
    await this.#running
  }

  #tell(error: unknown): void {
    if (!this.#stopped && !(error instanceof JournalClosedError))
      this.#options.onProblem('housekeeping', error)
  }

  #arm(): void {
    if (this.#stopped) return
    this.#cancel = this.#options.clock.after(this.#options.limits.everyMs, () => {
      void this.round().then(() => this.#arm())
    })
  }

  /** Beside the rounds: one that waits for room in a full journal would wait for the purge that makes it. */
  #armPurges(): void {
    if (this.#stopped) return
    this.#cancelPurges = this.#options.clock.after(this.#options.limits.everyMs, () => {
      void this.#purge()
        .catch((error: unknown) => this.#tell(error))
        .then(() => this.#armPurges())
    })
  }

  async #round(): Promise<void> {
    if (this.#options.replay.replaying) return
    this.#mark()
    // Before anything else takes the room that is left for it.
    if (await this.#snapshots.resume()) await this.#behindSnapshot()
    await this.#advanceHorizon()
    this.#allowInboxPurge()
    // Behind a snapshot of the owner before, too: else there may be no room for one of this owner.
    await this.#allowJournalPurge()
    await this.#purge()
    await this.#keep()
    if (this.#options.journal.isFull) await this.#makeRoom()
    else await this.#snapshot()
    await this.#allowJournalPurge()
    await this.#purge()
    await this.#look()
  }

  /** The broker is asked rarely while there is room, and each round while there is none. */
  async #look(): Promise<void> {
    if (this.#options.journal.mayHaveRoom) await this.#options.journal.look()
  }

  /**
   * One step at a time, and none before the purge that the last one allows: each takes room before it gives more. What is
   * kept goes first where the log cannot be cut behind a snapshot for it.
   */
  async #makeRoom(): Promise<void> {
    if (this.#journalPurges.latest > this.#purgedJournal || this.#mayLearnCounted()) return
    const { begin } = this.#snapshots
    if (begin > 0 && this.#options.state.kept.oldestCommit < begin) await this.#keepAgain()
    else await this.#snapshot()
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

  async #advanceHorizon(): Promise<void> {
    const { state, packs, replay, journal } = this.#options
    const seq = this.#lowestOpen()
    // A drop that waits for room must be committed before its pack counts as seen.
    if (seq <= state.horizon || journal.holdsBack) return
    // First: the next owner reads nothing below the horizon, and has to know the packs that stood there.
    const seen = packs.news(replay.cursor)
    if (seen) journal.write(seen)
    await journal.commit({ type: 'horizon', seq })
  }

  #allowInboxPurge(): void {
    const { state, clock, limits } = this.#options
    const before = clock.monotonic() - limits.purgeLagMs
    const old = this.#marks.findLast((mark) => mark.at <= before)
    this.#inboxPurges.allow(Math.min(state.horizon, old?.cursor ?? 0))
  }

  async #purge(): Promise<void> {
    const [inbox, journal] = [this.#inboxPurges.due(), this.#journalPurges.due()]
    if (inbox <= this.#purgedInbox && journal <= this.#purgedJournal) return
    const { limits, inboxLog, journalLog } = this.#options
    // What was waited for may be lost since, and this owner not know it yet.
    if (limits.syncLagMs > 0) await this.#options.journal.checkTail()
    if (this.#stopped) return
    if (inbox > this.#purgedInbox) {
      await inboxLog.purgeBelow(inbox)
      this.#purgedInbox = inbox
      const first = this.#marks.findLastIndex((mark) => mark.cursor <= inbox)
      this.#marks.splice(0, Math.max(0, first))
    }
    if (journal > this.#purgedJournal && !this.#stopped) {
      await journalLog.purgeBelow(journal)
      this.#purgedJournal = journal
      await this.#look()
    }
  }

  async #keep(): Promise<void> {
    const { live, replay, intake, state, limits, inboxLog, journalLog, journal } = this.#options
    const passed = this.#marks.findLast((mark) => mark.cursor <= state.horizon)?.bytes ?? 0
    const above = intake.bytesRead - passed
    const over = above - live.inboxBytes
    const outweighed = over > limits.keepBytes && over > limits.keepRatio * live.inboxBytes
    const due = outweighed || (over > CROWDED_RATIO * live.inboxBytes && (await nearlyFull(inboxLog, limits)))
    if (!due) return
    // The newest quarter is left: it is likely to be over soon by itself.
    const until = this.#marks.findLast((mark) => mark.bytes <= passed + above * 0.75)?.cursor ?? replay.cursor
    const log = await journalLog.state()
    const below = (live.lowestInboxSeq ?? until) < until ? until : replay.cursor
    const space = spaceForKeeps(log, live.keptBytes, journal.used)
    await this.#carry({ items: live.inInbox(), has: ({ seq }) => seq < below, space }, log)
    await this.#advanceHorizon()
  }

  async #snapshot(): Promise<void> {
    if (await this.#snapshots.take()) await this.#behindSnapshot()
  }

  /** Brings the counters up to it and carries old keeps forward: else the journal could not be cut there. */
  async #behindSnapshot(): Promise<void> {
    const { journal, projector } = this.#options
    projector.advance(journal.last)
    await this.#bringCountersUp()
    await this.#keepAgain()
  }

  /** Waits for Postgres, but not for ever: one that does not know of the claim yet may be away for hours. */
  async #bringCountersUp(): Promise<void> {
    const { projector, clock, onProblem } = this.#options
    let cancel = () => {}
    const late = new Promise<void>((resolve) => {
      cancel = clock.after(COUNTED_MS, resolve)
    })
    const flushed = projector.flush().catch((error: unknown) => onProblem('delivery counters', error))
    await Promise.race([flushed, late])
    cancel()
  }

  async #allowJournalPurge(): Promise<void> {
    const { begin } = this.#snapshots
    if (begin === 0 || this.#mayLearnCounted()) return
    const { journalLog, projector, limits, onProblem } = this.#options
    let target = Math.min(begin, this.#options.state.kept.oldestCommit)
    const counted = projector.position + 1
    if (counted < target && (await nearlyFull(journalLog, limits))) {
      onProblem(
        'delivery counters lag behind a journal that is nearly full',
        new Error(`${projector.waiting} wait`),
      )
    } else target = Math.min(target, counted)
    // 1: nothing is counted as far as is known.
    if (target > 1) this.#journalPurges.allow(target)
  }

  /** Postgres may say soon how far the counters are: it is asked after each claim. */
  #mayLearnCounted(): boolean {
    const { projector, clock } = this.#options
    return projector.position === 0 && clock.monotonic() < this.#claimedAt + COUNTED_MS
  }

  /** Old keeps hold the journal: what is still live of them is carried forward when it is outweighed. */
  async #keepAgain(): Promise<void> {
    const { live, journalLog, limits, journal } = this.#options
    const log = await journalLog.state()
    const over = log.bytes - live.keptBytes
    const outweighed = over > Math.max(limits.keepBytes, limits.keepRatio * live.keptBytes)
    if (!outweighed && !(over > CROWDED_RATIO * live.keptBytes && isCrowded(log, limits))) return
    const middle = (log.firstSeq + log.lastSeq) / 2
    const space = spaceToCarryForward(log, journal.used)
    await this.#carry({ items: live.kept(), has: ({ message }) => message.seq < middle, space }, log)
  }

  async #carry(carried: Carried, { maxBytes }: LogState): Promise<void> {
    const { clock, live, journal, payloads } = this.#options
    const mayUse = journal.used + carried.space
    const stopped = () => this.#stopped
    // In a full journal the oldest keep comes first: only without it the log can be cut.
    const sorted = !journal.isFull
    await carry(carried, { clock, payloads, journal, live, maxBytes, mayUse, sorted, stopped })
  }
}
