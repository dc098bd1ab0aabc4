import type { Log } from '../broker.ts'
import type { HousekeepingOwner } from './owner.ts'

/**
 * Purges of a log that committed records allow, until these records are on the broker's disk (docs/architecture/protocol.md,
 * "Housekeeping"). A power cut takes acknowledged messages that the broker has not synced, but a purge that it has done
 * may stay done. A log would then miss its beginning, and what replaces it.
 */
export class AllowedPurges {
  readonly #log: Pick<Log, 'purgeBelow'>
  readonly #options: HousekeepingOwner
  /** By ascending sequence and time. The first is due, or will be due first. */
  #allowed: { readonly below: number; readonly at: number }[] = []
  #purged = 0

  constructor(log: Pick<Log, 'purgeBelow'>, options: HousekeepingOwner) {
    this.#log = log
    this.#options = options
  }

  /** Whatever a purge below this sequence follows from is committed. */
  allow(below: number): void {
    if (below > this.latest) this.#allowed.push({ below, at: this.#options.clock.monotonic() })
  }

  /** All that is allowed by now, due or not; 0: nothing. */
  get latest(): number {
    return this.#allowed.at(-1)?.below ?? 0
  }

  /** The broker may have been away: a copy that comes from another server is younger than the wait, which begins again. */
  restart(): void {
    const { latest } = this
    this.#allowed = latest > 0 ? [{ below: latest, at: this.#options.clock.monotonic() }] : []
  }

  /** Purges what is due, and nothing at or above `most`. Answers where the log begins now; 0: nothing was due. */
  async purge(most = Number.POSITIVE_INFINITY): Promise<number> {
    const { limits, journal, stopped } = this.#options
    const due = Math.min(this.#due(), most)
    if (due <= this.#purged) return 0
    // What was waited for may be lost since, and this owner not know it yet.
    if (limits.syncLagMs > 0) await journal.checkTail()
    if (stopped()) return 0
    await this.#log.purgeBelow(due)
    this.#purged = due
    return due
  }

  /** 0: nothing. */
  #due(): number {
    const { clock, limits } = this.#options
    const last = this.#allowed.findLastIndex(({ at }) => at <= clock.monotonic() - limits.syncLagMs)
    if (last > 0) this.#allowed.splice(0, last)
    return last < 0 ? 0 : this.#allowed[0]!.below
  }
}
