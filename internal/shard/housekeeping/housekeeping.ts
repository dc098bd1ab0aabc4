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
import type { LiveItem, LiveItems } from '../held/live.ts'
import type { PackMemory } from '../held/pack-memory.ts'
import type { PayloadCache } from '../held/payload-cache.ts'
import type { ReplayState } from '../held/replay.ts'
import { DROP_MEMORY_MS } from '../journal/fold.ts'
import { type Journal, JournalClosedError } from '../journal/journal.ts'
import { SNAPSHOT_PART_BYTES, writeSnapshot } from '../journal/snapshot.ts'
import type { FoldState } from '../journal/state.ts'
import { AllowedPurges } from './allowed-purges.ts'
import { carry, fitting, laggingItems } from './keeping.ts'

export interface HousekeepingLimits {
  /** Between two rounds, ms. */
  readonly everyMs: number
  /** Purges of the inbox stay so far behind (ms): behind all retries of an append. */
  readonly purgeLagMs: number
  /** The broker has on disk what it acknowledged so long ago, ms; 0: it always has. Purges follow what is on disk. */
  readonly syncLagMs: number
  /**
   * What is over above the horizon is carried around when it outweighs what is live so many times. While it is carried
   * it stands in both logs, so 1.5 is what keeps them together below four times what is live …
   */
  readonly keepRatio: number
  /** … and is at least so large, bytes. */
  readonly keepBytes: number
  /** A snapshot is due when the journal grew by its last size, at least by this, bytes. */
  readonly snapshotBytes: number
  /** Of one part of a snapshot, bytes at most. */
  readonly partBytes: number
  /** Share of a stream's `max_bytes` from which on housekeeping does not wait for the other limits. */
  readonly fullShare: number
}

/** All that do not depend on the broker. */
export const HOUSEKEEPING_LIMITS: Omit<HousekeepingLimits, 'syncLagMs'> = {
  everyMs: 1_000,
  purgeLagMs: 30_000,
  keepRatio: 1.5,
  keepBytes: 32 * 1024 * 1024,
  snapshotBytes: 1024 * 1024,
  partBytes: SNAPSHOT_PART_BYTES,
  fullShare: 0.6,
}

/**
 * In a crowded inbox a keep is due as soon as what is over above the horizon is this part of what is live: else an
 * inbox of which more than half is held would stay full, whatever passes through the rest.
 */
const CROWDED_RATIO = 0.25
/**
 * Of the journal's `max_bytes`, for all kept items: what is kept has to be carried forward before the journal can be
 * cut, and that takes room.
 */
const KEPT_SHARE = 0.5
/**
 * Of the journal's `max_bytes`, with the next snapshot: keeps leave the rest to seals, results and snapshots. Carrying
 * forward may take more of it, for only that makes room again.
 */
const SPACE = { keep: 0.8, carryForward: 0.985 }
/** Of the journal's `max_bytes`: more than a keep record takes, but for one of a single item (`keeping.ts`). */
const LEAST_CARRIED = 1 / 32
/** A full journal waits so long for the position of the counters after a claim, and each snapshot for the counters, ms. */
const COUNTED_MS = 10_000
/** Of the last snapshot: a full journal grew, or drops were forgotten, by so much when the next one is worth its room. */
const FULL_GROWTH = 1 / 16
/** A drop in a snapshot, bytes. */
const DROP_BYTES = 48

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

/** Another owner began it; written is all of it but `rest`. */
export interface ResumedSnapshot {
  /** Sequence of the begin's commit. */
  readonly begin: number
  readonly rest: Buffer
  /** Of the whole of it. */
  readonly bytes: number
}

/** A journal as a claim finds it. */
export interface FoundJournal {
  readonly bytes: number
  /** Of the last complete snapshot; 0: there is none. */
  readonly snapshotBegin: number
  /** To be ended before another one is begun; null: there is none. */
  readonly resumed: ResumedSnapshot | null
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
  #snapshotSize = 0
  /** Of the last complete one, also of an owner before; 0: none. */
  #snapshotBegin: number
  #resumed: ResumedSnapshot | null
  #grownSince: number
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
    this.#grownSince = -found.bytes
    this.#snapshotBegin = found.snapshotBegin
    this.#resumed = found.resumed
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
    if (this.#resumed) await this.#finish(this.#resumed)
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
    if (this.#snapshotBegin > 0 && this.#oldestKept() < this.#snapshotBegin) await this.#keepAgain()
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
    const lagging = laggingItems(live.inInbox(), until)
    const wanted = lagging.length > 0 ? lagging : laggingItems(live.inInbox(), replay.cursor)
    const log = await journalLog.state()
    await this.#carry(wanted, spaceForKeeps(log, live.keptBytes, journal.used), log)
    await this.#advanceHorizon()
  }

  async #snapshot(): Promise<void> {
    const { journal, limits } = this.#options
    const grown = journal.bytesWritten - this.#grownSince
    const due = Math.max(limits.snapshotBytes, this.#snapshotSize)
    const worth = this.#snapshotSize * FULL_GROWTH
    if (grown < due && !(journal.isFull && (grown > worth || this.#forgotten() > worth))) return
    let begin = 0
    let bytes: Buffer = Buffer.alloc(0)
    await journal.commit({ type: 'snapshot-begin' }, (seq) => {
      begin = seq
      // Exactly what the fold holds after the commit of the begin.
      bytes = writeSnapshot(this.#options.state)
      journal.stateIs(bytes.length, bytes.length)
    })
    await this.#finish({ begin, rest: bytes, bytes: bytes.length })
  }

  /** Bytes that the room of the next snapshot counts for drops that are forgotten by now. */
  #forgotten(): number {
    const { state, clock, journal } = this.#options
    let known = state.drops.size
    for (const { at } of state.drops.values()) {
      if (at > clock.now() - DROP_MEMORY_MS) break
      known--
    }
    return (journal.dropsCounted - known) * DROP_BYTES
  }

  async #finish({ begin, rest, bytes }: ResumedSnapshot): Promise<void> {
    const { journal, projector, limits } = this.#options
    for (let at = 0; at < rest.length && !this.#stopped; at += limits.partBytes) {
      await journal.commit({ type: 'snapshot-part', bytes: rest.subarray(at, at + limits.partBytes) })
    }
    if (this.#stopped) return
    await journal.commit({ type: 'snapshot-end' })
    this.#snapshotBegin = begin
    this.#snapshotSize = bytes
    // Behind a resumed one another is due at once: it stands for a state of long ago.
    if (!this.#resumed) this.#grownSince = journal.bytesWritten
    this.#resumed = null
    projector.advance(journal.lastSeq)
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
    if (this.#snapshotBegin === 0 || this.#mayLearnCounted()) return
    const { journalLog, projector, limits, onProblem } = this.#options
    let target = Math.min(this.#snapshotBegin, this.#oldestKept())
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

  /** Commit of the oldest keep that still holds an item; Infinity: none does. */
  #oldestKept(): number {
    let oldest = Number.POSITIVE_INFINITY
    for (const { commit } of this.#options.state.kept.values()) oldest = Math.min(oldest, commit)
    return oldest
  }

  /** Old keeps hold the journal: what is still live of them is carried forward when it is outweighed. */
  async #keepAgain(): Promise<void> {
    const { live, journalLog, limits, journal } = this.#options
    const log = await journalLog.state()
    const over = log.bytes - live.keptBytes
    const outweighed = over > Math.max(limits.keepBytes, limits.keepRatio * live.keptBytes)
    if (!outweighed && !(over > CROWDED_RATIO * live.keptBytes && isCrowded(log, limits))) return
    const middle = (log.firstSeq + log.lastSeq) / 2
    const old = [...live.kept()].filter((item) => item.message.seq < middle)
    old.sort((a, b) => a.message.seq - b.message.seq)
    await this.#carry(old, spaceToCarryForward(log, journal.used), log)
  }

  async #carry(items: readonly LiveItem[], space: number, { maxBytes }: LogState): Promise<void> {
    const { live, journal, payloads } = this.#options
    const mayUse = journal.used + space
    const stopped = () => this.#stopped
    // In a full journal the oldest keep comes first: only without it the log can be cut.
    const sorted = !journal.isFull
    await carry(fitting(items, space), { payloads, journal, live, maxBytes, mayUse, sorted, stopped })
  }
}

async function nearlyFull(log: Log, limits: HousekeepingLimits): Promise<boolean> {
  return isCrowded(await log.state(), limits)
}

function isCrowded({ bytes, maxBytes }: LogState, { fullShare }: HousekeepingLimits): boolean {
  return maxBytes > 0 && bytes > maxBytes * fullShare
}

/** Bytes that may be kept in the journal beside `kept` bytes, when `used` are taken with the next snapshot. */
function spaceForKeeps({ maxBytes }: LogState, kept: number, used: number): number {
  return maxBytes > 0
    ? Math.min(maxBytes * KEPT_SHARE - kept, maxBytes * SPACE.keep - used)
    : Number.POSITIVE_INFINITY
}

/** Bytes that may be carried forward, when `used` are taken with the next snapshot. */
function spaceToCarryForward({ bytes, maxBytes }: LogState, used: number): number {
  if (maxBytes <= 0) return Number.POSITIVE_INFINITY
  const full = maxBytes * SPACE.carryForward
  // The oldest keep goes in any case: the purge behind it gives as much back.
  return Math.min(full - bytes, Math.max(full - used, maxBytes * LEAST_CARRIED))
}
