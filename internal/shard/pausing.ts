/**
 * Holds a shard still while its node may have been replaced. While it is paused nothing is sealed and no attempt begins;
 * items go on to be taken and dropped as duplicates.
 *
 * Invariant: a pause ends only with a commit that began after it. The successor of a paused owner may have sent what is
 * due here, so the owner first proves that nobody else has claimed the shard.
 */
import type { Groups } from './held/groups.ts'
import type { Journal } from './journal/journal.ts'

/** What a pause holds still, and what proves that it may end. */
export interface Pausable {
  readonly groups: Pick<Groups, 'paused' | 'pause'>
  readonly journal: Pick<Journal, 'prove'>
}

export class Pausing {
  readonly #ended: () => boolean
  #paused = false
  #pauses = 0
  #proving = false

  constructor(ended: () => boolean) {
    this.#ended = ended
  }

  /** Counts pauses: a proof from before the last one proves nothing. */
  get pauses(): number {
    return this.#pauses
  }

  /** `parts`: null before the shard is claimed. */
  pause(paused: boolean, parts: Pausable | null): void {
    if (paused && !this.#paused) this.#pauses++
    this.#paused = paused
    if (parts === null || parts.groups.paused === paused) return
    if (paused) parts.groups.pause(true)
    else void this.#goOn(parts)
  }

  /** The shard is about to act, by a claim that began after so many pauses: a later one has to be proven over first. */
  begin(parts: Pausable, pausesAtClaim: number): void {
    parts.groups.pause(this.#paused || this.#pauses !== pausesAtClaim)
    if (!this.#paused) void this.#goOn(parts)
  }

  async #goOn({ groups, journal }: Pausable): Promise<void> {
    if (this.#proving) return
    this.#proving = true
    try {
      while (!this.#paused && !this.#ended() && groups.paused) {
        const pauses = this.#pauses
        await journal.prove()
        if (pauses === this.#pauses && !this.#ended()) groups.pause(false)
      }
    } catch {
      // The journal is lost or closed: this owner ends, or has.
    } finally {
      this.#proving = false
    }
  }
}
