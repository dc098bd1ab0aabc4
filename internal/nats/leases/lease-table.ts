/**
 * What one node knows of the leases of all others. Pure; all times are the node's own monotonic ms.
 *
 * The bucket says nothing when a lease expires, and a node that stood still finds old news in its socket: so
 * silence alone proves nothing. What proves something is the node's own renewal coming back through the watch:
 * the stream is in order, hence everything stored before that renewal began has been seen (`proven`). A lease
 * is judged by that moment, not by the present one. And where proofs stayed away for a while everybody is given
 * time anew: what kept the own renewals from the broker, or the broker from answering, may have hit all others.
 *
 * Invariant: a boot is gone only if it held no lease at the moment last proven.
 */
import type { Lease } from '../../shard/ownership/membership.ts'
import type { LeaseTimes } from './lease-times.ts'

interface Standing {
  lease: Lease
  text: string
  /** When its last renewal arrived here, which is after it was stored. */
  seenAt: number
}

/** Questions that are remembered at most; a forgotten one is answered one proof later. */
const MOST_QUESTIONS = 1_024

export class LeaseTable {
  readonly #times: LeaseTimes
  readonly #standing = new Map<string, Standing>()
  /** When each release was seen. */
  readonly #released = new Map<string, number>()
  /** Boots without lease that somebody asked for, and when first: the answer is as of a later moment. */
  readonly #asked = new Map<string, number>()
  #since: number | undefined
  #asOf = Number.NEGATIVE_INFINITY

  constructor(times: LeaseTimes) {
    this.#times = times
  }

  /** A watch on a bucket that exists began at `at`, or earlier; what it knew before proves nothing any more. */
  began(at: number): void {
    this.#since = at
    this.#asOf = Number.NEGATIVE_INFINITY
  }

  /** The watch has a gap from now on. Whoever stood, stands. */
  lost(): void {
    this.#since = undefined
  }

  /** A renewal arrived. Whether it tells anything new. */
  stands(lease: Lease, at: number): boolean {
    const text = JSON.stringify(lease)
    const before = this.#standing.get(lease.boot)
    this.#standing.set(lease.boot, { lease, text, seenAt: at })
    this.#asked.delete(lease.boot)
    const returned = this.#released.delete(lease.boot)
    return returned || before?.text !== text
  }

  /** Its owner gave it up: nobody comes back under the same boot. */
  released(boot: string, at: number): boolean {
    const news = !this.#released.has(boot)
    this.#released.set(boot, at)
    return this.#standing.delete(boot) || news
  }

  /** Everything that was stored before `begun` has arrived. Whether somebody is gone by that, or certainty itself is new. */
  proven(begun: number): boolean {
    if (this.#since === undefined || begun < this.#asOf) return false
    const [wasJudging, before] = [this.#judging, this.#asOf]
    if (begun - before > this.#times.silenceMs) this.#since = Math.max(this.#since, begun)
    this.#asOf = begun
    if (!this.#judging) return false
    const answered = [...this.#asked.values()].some((at) => before < at && at <= begun)
    const expired = this.#expire()
    this.#forgetReleases()
    return !wasJudging || answered || expired
  }

  /** Whether all leases that stood when the watch began have arrived. */
  get complete(): boolean {
    return this.#since !== undefined && this.#asOf >= this.#since
  }

  /** See `Membership.isGone`. */
  isGone(boot: string, now: number): boolean {
    if (this.#released.has(boot)) return true
    if (this.#standing.has(boot)) return false
    return this.#askedAt(boot, now) <= this.#asOf && this.#judging && this.#fresh(now)
  }

  /** From when on a proof would make somebody gone, or answer a question; undefined when there is nothing to find out. */
  get nextJudgement(): number | undefined {
    if (this.#since === undefined) return undefined
    const certain = this.#since + this.#times.unsureMs
    if (this.#asOf < certain) return certain
    const due = [...this.#standing.values()].map(({ seenAt }) => seenAt + this.#patienceMs)
    const open = [...this.#asked.values()].filter((at) => at > this.#asOf)
    const next = Math.min(...due, ...open)
    return Number.isFinite(next) ? next : undefined
  }

  /** In no order. */
  leases(): Lease[] {
    return [...this.#standing.values()].map(({ lease }) => lease)
  }

  get #judging(): boolean {
    return this.#since !== undefined && this.#asOf - this.#since >= this.#times.unsureMs
  }

  get #patienceMs(): number {
    return this.#times.ttlMs + this.#times.marginMs
  }

  /** Whoever was gone when last proven may have come back long ago, if that was long ago. */
  #fresh(now: number): boolean {
    return now - this.#asOf <= this.#times.silenceMs
  }

  #askedAt(boot: string, now: number): number {
    const known = this.#asked.get(boot)
    if (known === undefined) this.#remember(boot, now)
    return known ?? now
  }

  #remember(boot: string, at: number): void {
    this.#asked.set(boot, at)
    const [oldest] = this.#asked.keys()
    if (this.#asked.size > MOST_QUESTIONS && oldest !== undefined) this.#asked.delete(oldest)
  }

  #expire(): boolean {
    let expired = false
    for (const [boot, { seenAt }] of this.#standing) {
      if (this.#asOf - seenAt < this.#patienceMs) continue
      this.#standing.delete(boot)
      this.#remember(boot, this.#asOf)
      expired = true
    }
    return expired
  }

  /** Once its lease has expired as well, the ordinary rule says the same. */
  #forgetReleases(): void {
    for (const [boot, at] of this.#released) {
      if (this.#asOf - at <= this.#patienceMs) continue
      this.#released.delete(boot)
      this.#remember(boot, this.#asOf)
    }
  }
}
