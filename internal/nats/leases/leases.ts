/**
 * Membership of the installation over a JetStream bucket (docs/architecture/protocol.md, "Membership"): one key a
 * process run, renewed each second, forgotten by the broker 5 s after its last renewal.
 *
 * The bucket lies in memory and may vanish with its broker: whoever misses it makes it anew, and nobody counts
 * as gone until all others had the time to come back.
 */

import { randomUUID } from 'node:crypto'
import type { Clock, Randomness } from '../../runtime/clock.ts'
import { withDeadline } from '../../runtime/deadline.ts'
import { messageOf } from '../../runtime/thrown.ts'
import type { Lease, Membership, NodeRole } from '../../shard/ownership/membership.ts'
import type { Connection } from '../connection.ts'
import { LeaseBucket, type StoredLease } from './lease-bucket.ts'
import { LeaseTable } from './lease-table.ts'
import { DEFAULT_LEASE_TTL_MS, leaseTimes } from './lease-times.ts'
import { decodeLease, unreadableLease } from './lease-value.ts'
import { LeaseWatch } from './lease-watch.ts'
import { type LeaseChange, OwnLease } from './own-lease.ts'

export interface LeaseOptions {
  connection: Connection
  clock: Clock
  random: Pick<Randomness, 'fraction'>
  /** The own lease but for its beginning, which is now, and what `announce` says: no shards and no webhooks at first. */
  node: Omit<Lease, 'shards' | 'accepting' | 'webhooks' | 'since'>
  replicas: number
  /** 500 to 60,000; default 5,000. The same on all nodes. */
  ttlMs?: number
  /** Default `penstock-leases`. */
  bucket?: string
  /** How long the own lease may take to stand at first, ms; default 10,000. */
  joinMs?: number
  /** Another process writes the own lease, or somebody deleted it: this one must end. Not while it joins. */
  onFatal: (error: Error) => void
  /** What was survived, the first of its kind in a row. */
  onProblem: (what: string, error: unknown) => void
}

/** A membership, and the release of the own lease: others see it gone at once. `close` never rejects. */
export type Leases = Membership & { close(): Promise<void> }

/**
 * Resolves when the own lease stands and all others that stand are known. Rejects when that takes longer than
 * `joinMs`, when somebody holds a lease of the same boot, and with RangeError for a TTL out of range.
 */
export async function joinLeases(options: LeaseOptions): Promise<Leases> {
  const { clock, joinMs = 10_000 } = options
  const leases = new NatsLeases(options)
  try {
    await withDeadline(clock, joinMs, leases.join())
    return leases
  } catch (error) {
    await leases.close()
    const cause = leases.lastProblem ?? error
    throw new Error(`the own lease does not stand: ${messageOf(cause)}`, { cause })
  }
}

class NatsLeases implements Leases {
  readonly ttlMs: number
  readonly #options: LeaseOptions
  readonly #bucket: LeaseBucket
  readonly #table: LeaseTable
  readonly #watch: LeaseWatch
  readonly #own: OwnLease
  readonly #listeners = new Set<() => void>()
  /** Leases that cannot be read, as they were reported. */
  readonly #unreadable = new Map<string, string>()
  /** While it joins. */
  #refuse: ((error: Error) => void) | undefined
  #notifying = false
  #cancelJudgement: (() => void) | undefined
  #closing: Promise<void> | undefined
  #released = false
  lastProblem: unknown

  constructor(options: LeaseOptions) {
    const { connection, clock, random, node, replicas, ttlMs = DEFAULT_LEASE_TTL_MS } = options
    const times = leaseTimes(ttlMs)
    const onProblem = (what: string, error: unknown) => this.#problem(what, error)
    this.ttlMs = ttlMs
    this.#options = options
    this.#bucket = new LeaseBucket({
      connection,
      replicas,
      ttlMs,
      ...(options.bucket !== undefined && { name: options.bucket }),
    })
    this.#table = new LeaseTable(times)
    this.#own = new OwnLease({
      bucket: this.#bucket,
      clock,
      random,
      times,
      onProblem,
      lease: {
        ...node,
        shards: [],
        accepting: runsShards(node.role),
        webhooks: 'none',
        since: clock.now(),
      },
      writer: randomUUID(),
      events: {
        changed: () => this.#changed(),
        stored: (begun) => this.#watch.expect(begun),
        stolen: (error) => this.#stolen(error),
      },
    })
    this.#watch = new LeaseWatch({
      connection,
      bucket: this.#bucket,
      clock,
      times,
      onProblem,
      events: {
        began: (at) => this.#began(at),
        lost: () => this.#lost(),
        changed: (key, stored) => this.#seen(key, stored),
      },
    })
  }

  get held(): boolean {
    return this.#own.held
  }

  get lapses(): number {
    return this.#own.lapses
  }

  leases(): Lease[] {
    const own = this.#own.lease
    const all = [...this.#table.leases(), ...(own ? [own] : [])]
    return all.sort((one, other) => (one.boot < other.boot ? -1 : 1))
  }

  isGone(boot: string): boolean {
    if (boot === this.#options.node.boot) return this.#released
    const gone = this.#table.isGone(boot, this.#options.clock.monotonic())
    // The question may be one that only the next renewal answers.
    if (!gone) this.#awaitJudgement()
    return gone
  }

  announce(change: LeaseChange): void {
    this.#own.announce(change)
  }

  onChange(listener: () => void): () => void {
    // A function of its own: the same listener may be given twice.
    const entry = () => listener()
    this.#listeners.add(entry)
    return () => this.#listeners.delete(entry)
  }

  /** Begins to renew and to watch; resolves when the own lease and the view of all others stand. */
  async join(): Promise<void> {
    const standing = this.#standing()
    await this.#bucket.create(this.ttlMs).catch((error: unknown) => {
      this.#problem('the bucket of the leases is not as it should be', error)
    })
    if (this.#closing !== undefined) return
    this.#watch.start()
    this.#own.renew()
    await standing
  }

  /** Rejects when the lease is somebody else's. */
  #standing(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#refuse = reject
      const leave = this.onChange(() => {
        if (!this.held || !this.#table.complete) return
        leave()
        this.#refuse = undefined
        resolve()
      })
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#cancelJudgement?.()
    await this.#own.release()
    this.#released = true
    this.#watch.stop()
    this.#changed()
  }

  #began(at: number): void {
    this.#table.began(at)
    // The first renewal that comes back tells that the list is complete.
    this.#own.renew()
  }

  #lost(): void {
    this.#cancelJudgement?.()
    this.#table.lost()
    this.#changed()
  }

  #seen(boot: string, stored: StoredLease): void {
    if (boot === this.#options.node.boot) this.#seenOwn(stored)
    else if (stored.data === undefined) this.#seenRelease(boot)
    else this.#seenOther(boot, stored.data)
  }

  #seenOwn(stored: StoredLease): void {
    const begun = this.#own.seen(stored)
    if (begun === undefined) return
    const wasComplete = this.#table.complete
    const news = this.#table.proven(begun)
    if (news || this.#table.complete !== wasComplete) this.#changed()
    this.#awaitJudgement()
  }

  #seenRelease(boot: string): void {
    this.#unreadable.delete(boot)
    if (this.#table.released(boot, this.#options.clock.monotonic())) this.#changed()
  }

  #seenOther(boot: string, data: Uint8Array): void {
    const reading = decodeLease(data, boot)
    const lease = 'lease' in reading ? reading.lease : unreadableLease(boot)
    this.#reportFault(boot, 'fault' in reading ? reading.fault : undefined)
    if (this.#table.stands(lease, this.#options.clock.monotonic())) this.#changed()
  }

  /** Once, not at each of its renewals. */
  #reportFault(boot: string, fault: string | undefined): void {
    if (this.#unreadable.get(boot) === fault) return
    if (fault === undefined) this.#unreadable.delete(boot)
    else {
      this.#unreadable.set(boot, fault)
      this.#problem(`lease ${boot} cannot be read`, new Error(fault))
    }
  }

  /** Silence proves nothing without a renewal that began after it: the next one comes when it decides something. */
  #awaitJudgement(): void {
    this.#cancelJudgement?.()
    const due = this.#table.nextJudgement
    if (due === undefined || this.#own.ended) return
    const { clock } = this.#options
    this.#cancelJudgement = clock.after(Math.max(0, due - clock.monotonic()), () => this.#own.renew())
  }

  #stolen(error: Error): void {
    this.lastProblem = error
    this.#watch.stop()
    this.#changed()
    if (this.#refuse) this.#refuse(error)
    else this.#options.onFatal(error)
  }

  #problem(what: string, error: unknown): void {
    this.lastProblem = error
    this.#options.onProblem(what, error)
  }

  /** Listeners hear of what changes in one turn once, and when all of it has changed. */
  #changed(): void {
    if (this.#notifying) return
    this.#notifying = true
    queueMicrotask(() => {
      this.#notifying = false
      for (const listener of [...this.#listeners]) this.#tell(listener)
    })
  }

  #tell(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#problem('a change of the leases was not taken in', error)
    }
  }
}

function runsShards(role: NodeRole): boolean {
  return role === 'actor' || role === 'penstock'
}
