/**
 * A node's own lease in the bucket: renewed once a heartbeat, by compare-and-set. An answer that did not come
 * is no failure: the revision is unknown then, and read before the next write.
 *
 * Invariant: one write is in flight at a time, and it ends before the next heartbeat.
 */

import type { Clock, Randomness } from '../../runtime/clock.ts'
import { asError } from '../../runtime/thrown.ts'
import type { Lease, Membership } from '../../shard/ownership/membership.ts'
import type { LeaseBucket, StoredLease } from './lease-bucket.ts'
import { Tenure } from './lease-tenure.ts'
import type { LeaseTimes } from './lease-times.ts'
import { ascending, decodeLease, encodeLease } from './lease-value.ts'

export interface OwnLeaseEvents {
  /** `held` changed, or what the lease says. */
  changed(): void
  /** The broker confirmed a renewal that began at `begun`, monotonic ms. */
  stored(begun: number): void
  /** Somebody else writes or deletes this lease; it is given up for good. */
  stolen(error: Error): void
}

export interface OwnLeaseOptions {
  bucket: LeaseBucket
  clock: Clock
  random: Pick<Randomness, 'fraction'>
  times: LeaseTimes
  /** As it begins; see `announce`. */
  lease: Lease
  /** Random UUID of this instance, by which it knows its own writes. */
  writer: string
  events: OwnLeaseEvents
  onProblem: (what: string, error: unknown) => void
}

export type LeaseChange = Parameters<Membership['announce']>[0]

/** Two processes with one boot id, or somebody who deletes leases. */
export class StolenLeaseError extends Error {
  override readonly name = 'StolenLeaseError'
}

/** The bucket is made anew, the revision read again: more in one renewal is odd, and waits for the next one. */
const MOST_ATTEMPTS = 4

export class OwnLease {
  readonly #options: OwnLeaseOptions
  readonly #tenure: Tenure
  #lease: Lease
  /** Of the key; 0: it is not there; undefined: unknown. */
  #revision: number | undefined = 0
  #wanted = false
  #writing: Promise<void> | undefined
  #failing = false
  #cancelHeartbeat: (() => void) | undefined
  #releasing: Promise<void> | undefined

  constructor(options: OwnLeaseOptions) {
    const { clock, times, events, onProblem } = options
    this.#options = options
    this.#lease = options.lease
    this.#tenure = new Tenure(clock, times, {
      changed: () => events.changed(),
      lapsed: (error) => onProblem('the own lease is lost', error),
    })
  }

  get held(): boolean {
    return this.#tenure.held
  }

  get lapses(): number {
    return this.#tenure.lapses
  }

  /** As the broker confirmed it last; undefined when it is not held. */
  get lease(): Lease | undefined {
    return this.#tenure.lease
  }

  /** The lease was released, or somebody else took it. */
  get ended(): boolean {
    return this.#tenure.ended
  }

  /** What it says from now on. */
  announce(change: LeaseChange): void {
    const next = { ...this.#lease, ...change }
    next.shards = ascending(next.shards)
    if (saysTheSame(next, this.#lease)) return
    this.#lease = next
    this.renew()
  }

  /** Writes at once, or right after the write that is in flight. */
  renew(): void {
    if (this.ended) return
    this.#wanted = true
    this.#writing ??= this.#write()
  }

  /**
   * The watch brought what stands under the own key. Returns when that renewal began, monotonic ms; undefined
   * when nothing follows from it.
   */
  seen({ revision, data }: StoredLease): number | undefined {
    if (this.ended) return undefined
    try {
      const number = this.#numberOf(data)
      // Nothing was written after it: also when its answer is lost, the next write needs no reading.
      if (number === this.#tenure.last) this.#revision = revision
      return this.#tenure.seen(number)
    } catch (error) {
      this.#give(error)
      return undefined
    }
  }

  /** Deletes it, so that others see it at once; `held` is false from the call on. Never rejects. */
  release(): Promise<void> {
    this.#releasing ??= this.#release()
    return this.#releasing
  }

  async #write(): Promise<void> {
    while (this.#wanted && !this.ended) {
      this.#wanted = false
      this.#scheduleHeartbeat()
      try {
        await this.#renewOnce()
        this.#failing = false
      } catch (error) {
        this.#failed(error)
        break
      }
    }
    this.#writing = undefined
  }

  #scheduleHeartbeat(): void {
    const { clock, random, times } = this.#options
    this.#cancelHeartbeat?.()
    const pause = times.heartbeatMs - random.fraction() * times.jitterMs
    this.#cancelHeartbeat = clock.after(pause, () => this.renew())
  }

  async #renewOnce(): Promise<void> {
    const { clock, times } = this.#options
    const until = clock.monotonic() + times.writeMs
    for (let attempt = 0; attempt < MOST_ATTEMPTS && !this.ended; attempt++) {
      this.#revision ??= await this.#readRevision(until)
      if (await this.#attempt(this.#revision, until)) return
    }
    if (!this.ended) throw new Error(`the lease was not stored in ${MOST_ATTEMPTS} attempts`)
  }

  /** Whether it is stored; if not, what hindered it is out of the way or has to be read. */
  async #attempt(expected: number, until: number): Promise<boolean> {
    const { bucket, writer, events } = this.#options
    const { number, begun, lease } = this.#tenure.begin(this.#lease)
    // Until the answer nobody knows.
    this.#revision = undefined
    const data = encodeLease(lease, { writer, beat: number })
    const answer = await bucket.put(lease.boot, data, expected, this.#left(until))
    if (answer.kind === 'stored') {
      this.#revision = answer.revision
      this.#tenure.confirm(number)
      events.stored(begun.monotonic)
      return true
    }
    if (answer.kind === 'missing') {
      await bucket.create(this.#left(until))
      this.#revision = 0
    }
    return false
  }

  /** What is left of a renewal's time, ms; throws when nothing is. */
  #left(until: number): number {
    const left = until - this.#options.clock.monotonic()
    if (left <= 0) throw new Error(`not done within ${this.#options.times.writeMs} ms`)
    return left
  }

  /** 0 when nothing stands. A write whose answer was lost may have been stored after all. */
  async #readRevision(until: number): Promise<number> {
    const stored = await this.#options.bucket.read(this.#lease.boot, this.#left(until))
    if (stored === undefined) return 0
    this.#tenure.confirm(this.#numberOf(stored.data))
    return stored.revision
  }

  /** Of the renewal that stands; throws StolenLeaseError when it is none of ours. */
  #numberOf(data: Uint8Array | undefined): number {
    const { boot, node } = this.#lease
    if (data === undefined)
      throw new StolenLeaseError(`lease ${boot} of ${node} was deleted by somebody else`)
    const { mark } = decodeLease(data, boot)
    if (mark?.writer === this.#options.writer) return mark.beat
    throw new StolenLeaseError(`lease ${boot} of ${node} is written by another process too`)
  }

  #failed(error: unknown): void {
    if (error instanceof StolenLeaseError) this.#give(error)
    else if (!this.#failing && !this.ended)
      this.#options.onProblem('the own lease could not be renewed', error)
    this.#failing = true
  }

  #give(error: unknown): void {
    if (this.ended) return
    this.#end()
    this.#options.events.stolen(asError(error))
  }

  #end(): void {
    this.#cancelHeartbeat?.()
    this.#tenure.end()
  }

  async #release(): Promise<void> {
    const { clock, times, onProblem } = this.#options
    if (this.ended) return
    this.#end()
    await this.#writing
    try {
      await this.#remove(clock.monotonic() + times.writeMs)
    } catch (error) {
      onProblem('the own lease was not released: it expires by itself', error)
    }
  }

  async #remove(until: number): Promise<void> {
    const { bucket } = this.#options
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      this.#revision ??= await this.#readRevision(until)
      // Nothing stands: it expired, or was never written.
      if (this.#revision === 0) return
      const answer = await bucket.remove(this.#lease.boot, this.#revision, this.#left(until))
      if (answer.kind !== 'changed') return
      this.#revision = undefined
    }
    throw new Error('it keeps changing')
  }
}

/** In what is announced. */
function saysTheSame(one: Lease, other: Lease): boolean {
  return (
    one.accepting === other.accepting &&
    one.webhooks === other.webhooks &&
    one.shards.join() === other.shards.join()
  )
}
