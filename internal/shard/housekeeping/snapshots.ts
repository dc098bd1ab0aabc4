/** When an owner writes a snapshot into the archive (docs/architecture/protocol.md, "Snapshots"). */
import { ArchiveFullError } from '../archive/snapshot-archive.ts'
import type { KnownSnapshot } from '../claim/journal-reading.ts'
import { encodeSnapshot, freezeState } from '../journal/snapshot.ts'
import type { HousekeepingOwner } from './owner.ts'

/** From a snapshot that found no room to the next attempt, ms. */
const AGAIN_AFTER_MS = 30_000

export class Snapshots {
  readonly #options: HousekeepingOwner
  #newest: KnownSnapshot | null
  /** Bytes that this owner had appended at the newest one; below 0: others did so. */
  #grownSince: number
  /** Monotonic ms. */
  #notBefore = 0

  /** `newest`: as the claim found it, and the bytes of the journal behind it. */
  constructor(options: HousekeepingOwner, newest: KnownSnapshot | null, bytesBehind: number) {
    this.#options = options
    this.#newest = newest
    this.#grownSince = -bytesBehind
  }

  /** Writes one where it is due. Answers it; null: none was due, or it could not be written. */
  async step(): Promise<KnownSnapshot | null> {
    const { archive, journal, state, clock, stopped, onProblem } = this.#options
    if (!this.#isDue()) return null
    const name = journal.last
    if (name.identity === null) return null
    const grownSince = journal.bytesWritten
    try {
      const bytes = await archive.write(name, encodeSnapshot(freezeState(state)), stopped)
      this.#newest = { name, bytes }
      this.#grownSince = grownSince
      return this.#newest
    } catch (error) {
      if (!(error instanceof ArchiveFullError)) throw error
      this.#notBefore = clock.monotonic() + AGAIN_AFTER_MS
      onProblem('the archive does not take a snapshot', error)
      return null
    }
  }

  /** The newest one is not there any more: another is due. */
  missed(): void {
    this.#grownSince = Number.NEGATIVE_INFINITY
    this.#newest = null
  }

  /** By growth. A full journal does not grow any more: there any growth will do. */
  #isDue(): boolean {
    const { journal, limits, clock } = this.#options
    if (clock.monotonic() < this.#notBefore) return false
    const grown = journal.bytesWritten - this.#grownSince
    return grown >= Math.max(limits.snapshotBytes, this.#newest?.bytes ?? 0) || (journal.isFull && grown > 0)
  }
}
