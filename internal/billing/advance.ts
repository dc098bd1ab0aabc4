/**
 * Credits of one customer that this node holds in advance: under load single charges are paid from them at
 * once, and what was spent is reported with the next statement (docs/decisions/0017-credits-in-advance.md).
 * No clock and no IO.
 *
 * Invariant: credits leave here once, as spent or as given back, and never more than were granted.
 */

/** What one statement says about the advance. */
export interface AdvanceReport {
  /** Spent since the last one, by buffer uid. */
  readonly spent: ReadonlyMap<string, Spent>
  /** No longer held. */
  readonly giveBack: number
  /** Wanted in addition, at most. */
  readonly take: number
}

export interface Spent {
  credits: number
  items: number
}

/** What was spent is reported within this, ms, and a load is measured over it. */
export const REPORT_MS = 50
/** Items in that time from which on a customer's charges are paid in advance. */
const LEAST_ITEMS = 16
/** Nothing above this part of what is free is held: where the balance is low, every charge is asked for. */
const LARGEST_PART = 1 / 64
/** The advance lasts for this many such times, so that a statement need never be waited for. */
const AHEAD = 3

export class Advance {
  #left = 0
  #spent = new Map<string, Spent>()
  /** When the oldest of `#spent` was spent, monotonic ms. */
  #spentSince = 0
  #window = { since: 0, items: 0, credits: 0 }
  #last = { items: 0, credits: 0 }
  /** Below it more is asked for before the time to report. */
  #low = 0
  #most = Number.POSITIVE_INFINITY

  /** Whether anything is held or not reported yet. */
  get active(): boolean {
    return this.#left > 0 || this.#spent.size > 0
  }

  get unreported(): boolean {
    return this.#spent.size > 0
  }

  /** A charge arrives, however it will be paid. */
  see(credits: number, now: number): void {
    this.#turn(now)
    this.#window.items++
    this.#window.credits += credits
  }

  /** Pays, or changes nothing and answers false. */
  spend(bufferUid: string, credits: number, now: number): boolean {
    if (credits > this.#left) return false
    this.#left -= credits
    if (this.#spent.size === 0) this.#spentSince = now
    const known = this.#spent.get(bufferUid)
    if (known === undefined) this.#spent.set(bufferUid, { credits, items: 1 })
    else {
      known.credits += credits
      known.items++
    }
    return true
  }

  /** Whether there is something to report, to take or to give back. */
  due(now: number): boolean {
    if (this.#spent.size > 0 && (this.#left < this.#low || now - this.#spentSince >= REPORT_MS)) return true
    return this.#left > 0 && this.#target(now) === 0
  }

  /**
   * `short`: charges wait that the advance could not pay; all of it goes back to where they are paid from.
   * `ending`: all of it goes back, for good.
   */
  report(now: number, { short, ending }: { short: boolean; ending: boolean }): AdvanceReport {
    const target = ending ? 0 : this.#target(now)
    const spent = this.#spent
    const giveBack = short || target === 0 ? this.#left : Math.max(0, this.#left - 2 * target)
    this.#spent = new Map()
    this.#left -= giveBack
    this.#low = target / AHEAD
    return { spent, giveBack, take: Math.max(0, target - this.#left) }
  }

  /** `free`: the balance that no node holds. */
  grant(credits: number, free: number): void {
    this.#left += credits
    this.#most = Math.floor((free + this.#left) * LARGEST_PART)
    // Granted less than was asked for: asking again at once would not help.
    this.#low = Math.min(this.#low, this.#left / AHEAD)
  }

  #target(now: number): number {
    this.#turn(now)
    const items = Math.max(this.#last.items, this.#window.items)
    if (items < LEAST_ITEMS) return 0
    return Math.min(this.#most, AHEAD * Math.max(this.#last.credits, this.#window.credits))
  }

  #turn(now: number): void {
    const age = now - this.#window.since
    if (age < REPORT_MS) return
    this.#last = age < 2 * REPORT_MS ? this.#window : { items: 0, credits: 0 }
    this.#window = { since: now, items: 0, credits: 0 }
  }
}
