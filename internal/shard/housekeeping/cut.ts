/**
 * Cuts the journal behind a snapshot (docs/architecture/protocol.md, "Housekeeping").
 *
 * Invariant: what a cut removes is in a snapshot that was read back from the disk of the broker, or over and counted. The owner proves
 * its claim in between, so nobody took that snapshot for an unended one since.
 */
import type { KnownSnapshot } from '../claim/journal-reading.ts'
import { AllowedPurges } from './allowed-purges.ts'
import { nearlyFull } from './limits.ts'
import type { HousekeepingOwner } from './owner.ts'

/** A cut waits so long for the position of the counters after a claim, and behind a snapshot for the counters, ms. */
const COUNTED_MS = 10_000

export interface CutOptions extends HousekeepingOwner {
  /** The newest snapshot is not there any more. */
  readonly onMissing: () => void
}

export class Cut {
  readonly #options: CutOptions
  readonly #purges: AllowedPurges
  readonly #claimedAt: number
  /** Read back; null: none. */
  #confirmed: KnownSnapshot | null = null
  /** Complete, and not read back since the broker was away last; null: none. */
  #unconfirmed: { readonly snapshot: KnownSnapshot; readonly since: number } | null = null

  /** `found`: the snapshot that the claim began with. */
  constructor(options: CutOptions, found: KnownSnapshot | null) {
    this.#options = options
    this.#purges = new AllowedPurges(options.journalLog, options)
    this.#claimedAt = options.clock.monotonic()
    if (found) this.behind(found)
  }

  /** The newest complete snapshot; null: there is none. */
  get snapshot(): KnownSnapshot | null {
    return this.#unconfirmed?.snapshot ?? this.#confirmed
  }

  /** The newest one may still be lost: another one beside it could take the room of the one before. */
  get isWaiting(): boolean {
    return this.#unconfirmed !== null
  }

  /** This snapshot is complete. */
  behind(snapshot: KnownSnapshot): void {
    this.#unconfirmed = { snapshot, since: this.#options.clock.monotonic() }
  }

  /** The broker may have been away: the disk is waited for again, and the snapshot read back. */
  reconnected(): void {
    this.#purges.restart()
    const { snapshot } = this
    this.#confirmed = null
    if (snapshot) this.behind(snapshot)
  }

  async step(): Promise<void> {
    await this.#confirm()
    await this.#allow()
    if ((await this.#purges.purge(this.#confirmed?.name.seq ?? 0)) > 0) await this.#options.journal.look()
  }

  async #confirm(): Promise<void> {
    const waiting = this.#unconfirmed
    const { archive, journal, clock, limits, onMissing } = this.#options
    if (!waiting || clock.monotonic() < waiting.since + limits.syncLagMs) return
    const { snapshot } = waiting
    const isThere = (await archive.read(snapshot.name)) !== undefined || (await this.#readFresh(snapshot))
    await journal.prove()
    // The broker was away meanwhile: see `reconnected`.
    if (this.#unconfirmed !== waiting) return
    this.#unconfirmed = null
    if (!isThere) return onMissing()
    this.#confirmed = snapshot
    await archive.removeBefore(snapshot.name)
  }

  async #readFresh({ name }: KnownSnapshot): Promise<boolean> {
    const { archive } = this.#options
    await archive.list()
    return (await archive.read(name)) !== undefined
  }

  async #allow(): Promise<void> {
    const { journalLog, projector, limits, state, onProblem } = this.#options
    const behind = this.#confirmed?.name.seq ?? 0
    if (behind <= this.#purges.latest) return
    await this.#bringCountersUp(behind)
    if (this.#mayLearnCounted()) return
    let target = Math.min(behind, state.kept.oldestCommit)
    const counted = projector.position + 1
    if (counted < target && (await nearlyFull(journalLog, limits))) {
      const lag = new Error(`${projector.waiting} wait`)
      onProblem('delivery counters lag behind a journal that is nearly full', lag)
    } else target = Math.min(target, counted)
    // 1: nothing is counted as far as is known.
    if (target > 1) this.#purges.allow(target)
  }

  /** Waits for Postgres, but not for ever: one that does not know of the claim yet may be away for hours. */
  async #bringCountersUp(seq: number): Promise<void> {
    const { projector, journal, clock, onProblem } = this.#options
    if (projector.position >= seq) return
    projector.advance(journal.last)
    let cancel = () => {}
    const late = new Promise<void>((resolve) => {
      cancel = clock.after(COUNTED_MS, resolve)
    })
    const flushed = projector.flush().catch((error: unknown) => onProblem('delivery counters', error))
    await Promise.race([flushed, late])
    cancel()
  }

  /** Postgres may say soon how far the counters are: it is asked after each claim. */
  #mayLearnCounted(): boolean {
    const { projector, clock } = this.#options
    return projector.position === 0 && clock.monotonic() < this.#claimedAt + COUNTED_MS
  }
}
