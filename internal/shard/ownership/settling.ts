/**
 * When a change of the members may move shards. Only a node that joins makes shards move between nodes that live, and
 * others may follow at once: the members have to stay the same for a while first. Shards that nobody has are taken
 * without delay, meanwhile by those who were members before.
 */
import type { Clock } from '../../runtime/clock.ts'
import type { Lease } from './membership.ts'

/** Joins begin the time of settling anew for so many times of it at most. */
const MOST_SETTLES = 5

export class Settling {
  readonly #clock: Clock
  readonly #settleMs: number
  #members: ReadonlySet<string> = new Set()
  /** When the last join was noted, monotonic ms. */
  #joinedAt = Number.NEGATIVE_INFINITY
  /** When the first join was noted since the members last had settled, monotonic ms. */
  #unsettledSince = Number.NEGATIVE_INFINITY
  /** Who was a member already when the last ones joined. */
  #previousMembers: ReadonlySet<string> = new Set()

  /** `settleMs`: how long the members must have been the same. */
  constructor(clock: Clock, settleMs: number) {
    this.#clock = clock
    this.#settleMs = settleMs
  }

  /** How long until shards may move, ms; 0 or less: now. */
  get leftMs(): number {
    return this.#joinedAt + this.#settleMs - this.#clock.monotonic()
  }

  /** To be called with the members each time that a plan is made. */
  note(members: readonly Lease[]): void {
    const now = this.#clock.monotonic()
    const joined = members.some(({ boot }) => !this.#members.has(boot))
    const settled = this.leftMs <= 0
    if (joined && settled) {
      this.#previousMembers = this.#members
      this.#unsettledSince = now
    }
    this.#members = new Set(members.map(({ boot }) => boot))
    // A node that starts again and again must not hold the others up for ever: those from before may be gone.
    const restarts = settled || now < this.#unsettledSince + MOST_SETTLES * this.#settleMs
    if (joined && restarts) this.#joinedAt = now
  }

  /** Those among which a plan may be made while the members settle. */
  previous(members: readonly Lease[]): Lease[] {
    return members.filter(({ boot }) => this.#previousMembers.has(boot))
  }
}
