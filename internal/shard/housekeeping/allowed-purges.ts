import type { Clock } from '../../runtime/clock.ts'

/**
 * Purges that committed records allow, until these records are on the broker's disk (docs/architecture/protocol.md,
 * "Housekeeping"). A power cut takes acknowledged messages that the broker has not synced, but a purge that it has done
 * may stay done. A log would then miss its beginning, and what replaces it.
 */
export class AllowedPurges {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #lagMs: number
  /** By ascending sequence and time. The first is due, or will be due first. */
  #allowed: { readonly below: number; readonly at: number }[] = []

  /** `lagMs`: the broker has on disk what it acknowledged so long ago, ms; 0: it always has. */
  constructor(clock: Pick<Clock, 'monotonic'>, lagMs: number) {
    this.#clock = clock
    this.#lagMs = lagMs
  }

  /** Whatever a purge below this sequence follows from is committed. */
  allow(below: number): void {
    if (below > this.latest) this.#allowed.push({ below, at: this.#clock.monotonic() })
  }

  /** All that is allowed by now, due or not; 0: nothing. */
  get latest(): number {
    return this.#allowed.at(-1)?.below ?? 0
  }

  /** The broker may have been away: a copy that comes from another server is younger than the wait, which begins again. */
  restart(): void {
    const { latest } = this
    this.#allowed = latest > 0 ? [{ below: latest, at: this.#clock.monotonic() }] : []
  }

  /** The log may be purged below this sequence; 0: nothing is due. */
  due(): number {
    const before = this.#clock.monotonic() - this.#lagMs
    const last = this.#allowed.findLastIndex(({ at }) => at <= before)
    if (last > 0) this.#allowed.splice(0, last)
    return last < 0 ? 0 : this.#allowed[0]!.below
  }
}
