/** When an owner writes a snapshot into the archive (docs/architecture/protocol.md, "Snapshots"). */
import { ArchiveFullError } from '../archive/snapshot-archive.ts'
import { encodeSnapshot, freezeState } from '../journal/snapshot.ts'
import type { Cut } from './cut.ts'
import type { HousekeepingOwner } from './owner.ts'

/** From a snapshot that found no room to the next attempt, ms. */
const AGAIN_AFTER_MS = 30_000

export interface SnapshotsOptions extends HousekeepingOwner {
  readonly cut: Pick<Cut, 'snapshot' | 'isWaiting' | 'behind'>
}

export class Snapshots {
  readonly #options: SnapshotsOptions
  /** Bytes that this owner had appended at the newest one; below 0: others did so. */
  #grownSince: number
  /** Monotonic ms. */
  #notBefore = 0

  /** `bytesBehind`: of the journal behind the newest one, as the claim found it. */
  constructor(options: SnapshotsOptions, bytesBehind: number) {
    this.#options = options
    this.#grownSince = -bytesBehind
  }

  /** Writes one where it is due. From then on the journal is cut behind it. */
  async step(): Promise<void> {
    const { archive, journal, state, cut, clock, stopped, onProblem } = this.#options
    if (cut.isWaiting || !this.#isDue()) return
    const name = journal.last
    if (name.identity === null) return
    const grownSince = journal.bytesWritten
    try {
      const bytes = await archive.write(name, encodeSnapshot(freezeState(state)), stopped)
      this.#grownSince = grownSince
      cut.behind({ name, bytes })
    } catch (error) {
      if (!(error instanceof ArchiveFullError)) throw error
      this.#notBefore = clock.monotonic() + AGAIN_AFTER_MS
      onProblem('the archive does not take a snapshot', error)
    }
  }

  /** The newest one is not there any more: another is due. */
  missed(): void {
    this.#grownSince = Number.NEGATIVE_INFINITY
  }

  /** By growth. A full journal does not grow any more: there any growth will do. */
  #isDue(): boolean {
    const { journal, limits, cut, clock } = this.#options
    if (clock.monotonic() < this.#notBefore) return false
    const grown = journal.bytesWritten - this.#grownSince
    return grown >= Math.max(limits.snapshotBytes, cut.snapshot?.bytes ?? 0) || (journal.isFull && grown > 0)
  }
}
