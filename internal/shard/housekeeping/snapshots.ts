/**
 * The snapshots of one owner: when the next one is due, and the end of one that another owner began
 * (docs/architecture/protocol.md, "Housekeeping" and "Room in a journal").
 */
import type { Clock } from '../../runtime/clock.ts'
import { inTurns } from '../../runtime/in-turns.ts'
import { DROP_MEMORY_MS } from '../journal/fold.ts'
import type { Journal } from '../journal/journal.ts'
import { encodeSnapshot, type FrozenState, freezeState, inParts } from '../journal/snapshot.ts'
import type { FoldState } from '../journal/state.ts'
import type { HousekeepingLimits } from './limits.ts'

/** Of the last snapshot: a full journal grew, or drops were forgotten, by so much when the next one is worth its room. */
const FULL_GROWTH = 1 / 16
/** A drop in a snapshot, bytes. */
const DROP_BYTES = 48

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

export interface SnapshotOptions {
  readonly clock: Clock
  readonly limits: Pick<HousekeepingLimits, 'snapshotBytes' | 'partBytes'>
  readonly journal: Journal
  readonly state: FoldState
  /** A snapshot that is being written is left without its end. */
  readonly stopped: () => boolean
}

export class Snapshots {
  readonly #options: SnapshotOptions
  #begin: number
  #resumed: ResumedSnapshot | null
  #size = 0
  #grownSince: number

  constructor(options: SnapshotOptions, found: FoundJournal) {
    this.#options = options
    this.#begin = found.snapshotBegin
    this.#resumed = found.resumed
    this.#grownSince = -found.bytes
  }

  /** Of the last complete one, also of an owner before; 0: none. */
  get begin(): number {
    return this.#begin
  }

  /** Ends the one that another owner began. Answers whether there was one, and it is complete. */
  async resume(): Promise<boolean> {
    if (!this.#resumed) return false
    const { begin, rest, bytes } = this.#resumed
    const done = await this.#write(begin, inParts([rest], this.#options.limits.partBytes), bytes)
    // Another is due at once: this one stands for a state of long ago.
    if (done) this.#resumed = null
    return done
  }

  /** Writes one where it is due. Answers whether it was due, and it is complete. */
  async take(): Promise<boolean> {
    if (!this.#isDue()) return false
    const { journal, clock, state, limits } = this.#options
    const { promise: frozen, resolve: freeze } = Promise.withResolvers<FrozenState>()
    let measured: ReturnType<Journal['freeze']> = () => {}
    const begin = await journal.commit({ type: 'snapshot-begin' }, () => {
      // Exactly what the fold holds after the commit of the begin.
      freeze(freezeState(state))
      measured = journal.freeze()
    })
    const parts: Buffer[] = []
    const encoding = inParts(encodeSnapshot(await frozen), limits.partBytes)
    await inTurns(clock, encoding, (part) => void (part && parts.push(part)))
    const bytes = lengthOf(parts)
    measured(bytes, bytes)
    const done = await this.#write(begin, parts, bytes)
    if (done) this.#grownSince = journal.bytesWritten
    return done
  }

  #isDue(): boolean {
    const { journal, limits } = this.#options
    const grown = journal.bytesWritten - this.#grownSince
    if (grown >= Math.max(limits.snapshotBytes, this.#size)) return true
    const worth = this.#size * FULL_GROWTH
    return journal.isFull && (grown > worth || this.#forgotten() > worth)
  }

  /** Bytes that the room of the next one counts for drops that are forgotten by now. */
  #forgotten(): number {
    const { state, clock, journal } = this.#options
    let known = state.drops.size
    for (const { at } of state.drops.values()) {
      if (at > clock.now() - DROP_MEMORY_MS) break
      known--
    }
    return (journal.dropsCounted - known) * DROP_BYTES
  }

  /** `size`: of the whole of it, bytes. */
  async #write(begin: number, parts: Iterable<Buffer | undefined>, size: number): Promise<boolean> {
    const { journal, stopped } = this.#options
    for (const bytes of parts) if (bytes && !stopped()) await journal.commit({ type: 'snapshot-part', bytes })
    if (stopped()) return false
    await journal.commit({ type: 'snapshot-end' })
    this.#begin = begin
    this.#size = size
    return true
  }
}

function lengthOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}
