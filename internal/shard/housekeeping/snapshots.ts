/**
 * The snapshots of one owner: when the next one is due, and the end of one that another owner began
 * (docs/architecture/protocol.md, "Housekeeping" and "Room in a journal").
 */
import type { Clock } from '../../runtime/clock.ts'
import { DROP_MEMORY_MS } from '../journal/fold.ts'
import type { Journal } from '../journal/journal.ts'
import { writeSnapshot } from '../journal/snapshot.ts'
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
    const done = await this.#write(this.#resumed)
    // Another is due at once: this one stands for a state of long ago.
    if (done) this.#resumed = null
    return done
  }

  /** Writes one where it is due. Answers whether it was due, and it is complete. */
  async take(): Promise<boolean> {
    if (!this.#isDue()) return false
    const { journal, state } = this.#options
    let begin = 0
    let bytes: Buffer = Buffer.alloc(0)
    await journal.commit({ type: 'snapshot-begin' }, (seq) => {
      begin = seq
      // Exactly what the fold holds after the commit of the begin.
      bytes = writeSnapshot(state)
      journal.stateIs(bytes.length, bytes.length)
    })
    const done = await this.#write({ begin, rest: bytes, bytes: bytes.length })
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

  async #write({ begin, rest, bytes }: ResumedSnapshot): Promise<boolean> {
    const { journal, limits, stopped } = this.#options
    for (let at = 0; at < rest.length && !stopped(); at += limits.partBytes) {
      await journal.commit({ type: 'snapshot-part', bytes: rest.subarray(at, at + limits.partBytes) })
    }
    if (stopped()) return false
    await journal.commit({ type: 'snapshot-end' })
    this.#begin = begin
    this.#size = bytes
    return true
  }
}
