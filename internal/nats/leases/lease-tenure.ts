/**
 * For how long the own lease may be believed. A renewal counts from the moment it began: whatever the broker or the
 * network did with it, it was stored later than that, so it expires for others later than it does here. Both clocks
 * count, because the monotonic one stands still while the machine is suspended.
 *
 * Invariants: `held` is false before anybody else can see the lease expired; `lapses` counts a lapse before `held` is
 * true again, also one that only the next renewal shows.
 */
import type { Clock } from '../../runtime/clock.ts'
import { elapsedSince, type Moment, momentOf } from '../../runtime/moment.ts'
import type { Lease } from '../../shard/ownership/membership.ts'
import type { LeaseTimes } from './lease-times.ts'

/** A renewal: its number, when it began, and what it says. */
export interface Beat {
  readonly number: number
  readonly begun: Moment
  readonly lease: Lease
}

export interface TenureEvents {
  /** `held` changed, or what the lease says. */
  changed(): void
  /** No renewal was confirmed in time. */
  lapsed(error: Error): void
}

export class Tenure {
  readonly #clock: Clock
  readonly #times: LeaseTimes
  readonly #events: TenureEvents
  /** Renewals that were not seen in the watch yet. */
  readonly #pending = new Map<number, Beat>()
  #last = 0
  #confirmed: Beat | undefined
  #wasHeld = false
  #lapses = 0
  #ended = false
  #cancelLapse: (() => void) | undefined

  constructor(clock: Clock, times: LeaseTimes, events: TenureEvents) {
    this.#clock = clock
    this.#times = times
    this.#events = events
  }

  get held(): boolean {
    if (this.#ended || this.#confirmed === undefined) return false
    return elapsedSince(this.#clock, this.#confirmed.begun) < this.#standsMs
  }

  /** How often `held` became false, as far as anybody noticed. */
  get lapses(): number {
    return this.#lapses
  }

  /** As the broker confirmed it last; undefined when it is not held. */
  get lease(): Lease | undefined {
    return this.held ? this.#confirmed?.lease : undefined
  }

  /** It is over for good. */
  get ended(): boolean {
    return this.#ended
  }

  /** Number of the renewal that began last, 0 before the first. */
  get last(): number {
    return this.#last
  }

  /** A renewal begins now. */
  begin(lease: Lease): Beat {
    const begun = momentOf(this.#clock)
    // Nothing follows from so old a renewal any more, should it still be seen.
    for (const beat of this.#pending.values())
      if (begun.monotonic - beat.begun.monotonic > 2 * this.#times.ttlMs) this.#pending.delete(beat.number)
    const beat = { number: ++this.#last, begun, lease }
    this.#pending.set(beat.number, beat)
    return beat
  }

  /** The broker has it, whoever says so. */
  confirm(number: number): void {
    const beat = this.#pending.get(number)
    if (this.#ended || beat === undefined || beat.number < (this.#confirmed?.number ?? 0)) return
    // It may have lapsed without a timer that told: those stand still with the machine.
    this.#noteLapse()
    const before = this.#confirmed
    this.#confirmed = beat
    this.#awaitLapse()
    if (this.#turned() || before?.lease !== beat.lease) this.#events.changed()
  }

  /** It came back through the watch. Returns when it began, monotonic ms; undefined when it is long over. */
  seen(number: number): number | undefined {
    const beat = this.#pending.get(number)
    this.confirm(number)
    for (const earlier of this.#pending.keys()) if (earlier <= number) this.#pending.delete(earlier)
    return beat?.begun.monotonic
  }

  end(): void {
    this.#ended = true
    this.#cancelLapse?.()
    if (this.#turned()) this.#events.changed()
  }

  get #standsMs(): number {
    return this.#times.ttlMs - this.#times.marginMs
  }

  /** Whether `held` is another one than last time. */
  #turned(): boolean {
    const was = this.#wasHeld
    this.#wasHeld = this.held
    if (was && !this.#wasHeld) this.#lapses++
    return was !== this.#wasHeld
  }

  #awaitLapse(): void {
    this.#cancelLapse?.()
    const left = (this.#confirmed?.begun.monotonic ?? 0) + this.#standsMs - this.#clock.monotonic()
    this.#cancelLapse = this.#clock.after(Math.max(0, left), () => this.#lapse())
  }

  #lapse(): void {
    // A timer may come a little early.
    if (this.held) this.#awaitLapse()
    else this.#noteLapse()
  }

  #noteLapse(): void {
    if (this.held || !this.#turned()) return
    this.#events.lapsed(new Error(`no renewal was confirmed for ${this.#standsMs} ms`))
    this.#events.changed()
  }
}
