/** A history indexed for the rules of the checker. */
import { readKey, shardOfKey, versionOf } from './batch-key.ts'
import { cutsDeliveries, endsAll, nodeOf } from './causes.ts'
import type { Batch, Delivery, Fault, History, SentItem } from './history.ts'
import { Owners } from './owners.ts'
import type { BufferTerms } from './terms.ts'
import { ON_THE_WAY_MS, Told } from './told.ts'

/** A machine that stands still for so long breaks what a fault would break: leases, and waiting requests; ms. */
const LONG_STALL_MS = 2_000
/** What was held back arrives so long after its release, on a busy machine, ms. */
const ARRIVAL_MS = 2_000

/** An attempt without an answer is given up after 10 s, and begins behind its seal; less what clocks differ, ms. */
const OVERDUE_MS = 9_900
/** From the end of a connection at its sender to that at the destination, on a busy machine, ms; idle ones live for 4 s. */
const CLOSING_MS = 2_000
/** A connection that nobody has taken yet waits less than this at its destination, on a busy machine, ms. */
const LATE_MS = 30_000

export interface Violation {
  readonly rule: string
  readonly detail: unknown
}

/** Where in its journal, and when, the record was stored that says that a batch is over. */
interface Settlement {
  readonly at: number
  readonly seq: number
}

export class Evidence {
  readonly history: History
  readonly owners: Owners
  /** What buffers were told, and where that was known when. */
  readonly told: Told
  /** Every delivered and every dead batch. */
  readonly batches: readonly Batch[]
  /** Deliveries of an idempotency key, in order of arrival. */
  readonly attempts: ReadonlyMap<string, Delivery[]>
  /** Deliveries of a group, in order of arrival. */
  readonly deliveriesOfGroups: ReadonlyMap<string, Delivery[]>
  readonly #faults: readonly Fault[]
  readonly #sent: ReadonlyMap<number, SentItem>
  readonly #duplicates: ReadonlyMap<string, SentItem[]>
  readonly #settlements: ReadonlyMap<string, Settlement>
  readonly #commitTimes: ReadonlyMap<string, number>
  readonly #arrived = new Set<number>()
  /** When an item was last seen on its way out: its last delivery, or its dead letter. */
  readonly #lastSeen = new Map<number, number>()
  readonly #firstSeen = new Map<number, number>()
  readonly #keys = new Map<number, string>()
  /** What the journals tell begins here, at the latest of them. */
  readonly #recordsBegin: number

  constructor(history: History) {
    this.history = history
    this.owners = new Owners(history)
    this.batches = [...history.deliveries, ...history.dead]
    this.attempts = Map.groupBy(history.deliveries, ({ key }) => key)
    this.deliveriesOfGroups = Map.groupBy(history.deliveries, groupOf)
    this.#faults = [...history.faults, ...stallsOf(history)]
    this.#sent = new Map(history.sent.map((item) => [item.n, item]))
    this.#duplicates = Map.groupBy(history.sent, duplicateName)
    this.told = new Told(history, {
      owners: this.owners,
      faultsBetween: (from, to) => this.faultsBetween(from, to),
      stalledMs: (from, to) => this.stalledMs(from, to),
    })
    this.#settlements = settlementsOf(history)
    this.#commitTimes = new Map(history.commits.map(({ shard, seq, at }) => [`${shard}/${seq}`, at]))
    for (const { key, items, at, status } of history.deliveries)
      for (const { n } of items) this.#see(n, key, at, status >= 200 && status < 300)
    for (const { key, items, createdAt } of history.dead)
      for (const { n } of items) this.#see(n, key, createdAt, true)
    const firsts = new Map(history.commits.toReversed().map(({ shard, at }) => [shard, at]))
    this.#recordsBegin = Math.max(0, ...firsts.values())
  }

  #see(n: number, key: string, at: number, settles: boolean): void {
    this.#keys.set(n, key)
    this.#firstSeen.set(n, Math.min(at, this.#firstSeen.get(n) ?? at))
    this.#lastSeen.set(n, Math.max(at, this.#lastSeen.get(n) ?? 0))
    if (settles) this.#arrived.add(n)
  }

  sent(n: number): SentItem | undefined {
    return this.#sent.get(n)
  }

  /** Acknowledged with 2xx, or in the dead letter queue. */
  settled(n: number): boolean {
    return this.#arrived.has(n)
  }

  /** Of the batch in which it went out; undefined: it never did. */
  keyOf(n: number): string | undefined {
    return this.#keys.get(n)
  }

  /** Unix ms; undefined: the item itself never went out. */
  lastSeen(n: number): number | undefined {
    return this.#lastSeen.get(n)
  }

  firstSeen(n: number): number | undefined {
    return this.#firstSeen.get(n)
  }

  /** The first record that says that this batch is over; undefined: the journals have none, or have it no more. */
  settlement(key: string): Settlement | undefined {
    return this.#settlements.get(key)
  }

  /**
   * When the record was stored that says that an item is over: seconds after its last delivery where that waits for
   * Postgres or the broker. A record that a purge took is older than what is left; undefined: the item itself never went out.
   */
  overAt(n: number): number | undefined {
    const seen = this.#lastSeen.get(n)
    return seen && (this.settlement(this.#keys.get(n)!)?.at ?? Math.max(seen, this.#recordsBegin))
  }

  /** Other requests with the same explicit id in the same group. */
  duplicatesOf(item: SentItem): SentItem[] {
    if (item.messageId === null) return []
    return (this.#duplicates.get(duplicateName(item)) ?? []).filter((duplicate) => duplicate !== item)
  }

  /** Accepted items of which neither they nor a duplicate were seen on their way out. */
  get unseen(): number {
    const seen = ({ n }: SentItem) => this.lastSeen(n) !== undefined
    return this.history.sent.filter(
      (item) => item.answer?.status === 202 && ![item, ...this.duplicatesOf(item)].some(seen),
    ).length
  }

  /** Of a batch; undefined: its key is none. */
  shardOf(key: string): number | undefined {
    return shardOfKey(key, this.history.shards)
  }

  /** Faults that touch this time, long stalls of the machine among them. */
  faultsBetween(from: number, to: number): Fault[] {
    return this.#faults.filter((fault) => fault.from <= to && fault.to >= from)
  }

  /**
   * Faults that may have cut off an attempt of this batch between these times, or the record of its answer: of a node that
   * had its shard then, of a broker, or of the network to the destination.
   */
  cutsOf(key: string, from: number, to: number): Fault[] {
    const shard = this.shardOf(key)
    return this.faultsBetween(from, to).filter((fault) => {
      const node = nodeOf(fault)
      if (!cutsDeliveries(fault)) return false
      return node === undefined || shard === undefined || this.owners.mayHaveHad(node, shard, from, to)
    })
  }

  /** How often the shard of a batch was claimed since its seal and until `at`; undefined: nobody knows. */
  claimsSinceSeal(key: string, at: number): number | undefined {
    const shard = this.shardOf(key)
    return shard === undefined ? undefined : this.owners.claimsSince(shard, versionOf({ key }), at)
  }

  /** Its sender stood still, or the network held it, while that happened at `since` which should have come after it. */
  heldBack({ at }: Delivery, since: number): boolean {
    return this.#faults.some(
      ({ from, heldUntil }) =>
        heldUntil !== undefined &&
        from <= since &&
        at <= heldUntil + ARRIVAL_MS + this.stalledMs(heldUntil, at),
    )
  }

  /**
   * Its sender closed the connection before it could hear the answer, for its 10 s were over: on a busy machine most of them
   * may pass on the way. It arrives behind whatever the sender did since. Who heard an answer keeps the connection for more.
   */
  wasGivenUp(delivery: Delivery): boolean {
    return this.#wasUnheard(delivery) && this.#closedOverdue(delivery)
  }

  /**
   * The answer came while its sender stood still, and its 10 s were over when the sender went on: it closed the connection
   * at once. The answer may have been on its way when the sender stopped.
   */
  wasOverdueBehind(delivery: Delivery, { from, heldUntil }: Fault): boolean {
    const { answeredAt, closedAt } = delivery
    if (heldUntil === undefined || closedAt === null || closedAt < heldUntil) return false
    if (answeredAt < from - CLOSING_MS || answeredAt > heldUntil) return false
    const closedAtOnce = closedAt <= heldUntil + CLOSING_MS + this.stalledMs(heldUntil, closedAt)
    return closedAtOnce && this.#closedOverdue(delivery)
  }

  /** 10 s or more behind the seal of its batch, which no attempt begins before. */
  #closedOverdue({ key, closedAt }: Delivery): boolean {
    const { version } = readKey(key) ?? {}
    const sealedAt = this.#commitTimes.get(`${this.shardOf(key)}/${version}`)
    return closedAt !== null && (sealedAt === undefined || closedAt - sealedAt >= OVERDUE_MS)
  }

  /** Who hears an answer keeps the connection for more. */
  #wasUnheard({ answeredAt, closedAt }: Delivery): boolean {
    return closedAt !== null && closedAt <= answeredAt + CLOSING_MS + this.stalledMs(answeredAt, closedAt)
  }

  /**
   * The time from which on it may have been sent. A connection waits at a busy destination until it is taken, and what came
   * by it is read even when its sender has given it up meanwhile, or was killed. Any other attempt arrives as it is sent.
   */
  sentFrom(delivery: Delivery): number {
    return this.#isLate(delivery)
      ? delivery.at - LATE_MS - this.stalledMs(delivery.at - LATE_MS, delivery.at)
      : delivery.at
  }

  #isLate(delivery: Delivery): boolean {
    const { at, closedAt } = delivery
    if (closedAt === null || !this.#wasUnheard(delivery)) return false
    const killedWithin = (from: number, to: number) =>
      this.faultsBetween(from, to).some((fault) => endsAll(fault) && fault.from >= from)
    // Who was killed behind its arrival was there for it.
    if (killedWithin(at - LATE_MS, at) && !killedWithin(at + 1, closedAt)) return true
    // One that was there for most of its 10 s came in time.
    return this.wasGivenUp(delivery) && closedAt - at < OVERDUE_MS - ON_THE_WAY_MS
  }

  /** Terms of its buffer of which one was in force when it was sent. */
  termsOf(delivery: Delivery): BufferTerms[] {
    const { bufferId, key, at } = delivery
    const from = this.sentFrom(delivery)
    if (from < at) return this.told.between(bufferId, from, at)
    return this.told.at(bufferId, at, this.shardOf(key))
  }

  /** Of this time the machine stood still so long, ms. */
  stalledMs(from: number, to: number): number {
    return this.history.stalls.reduce(
      (sum, stall) => sum + Math.max(0, Math.min(stall.to, to) - Math.max(stall.from, from)),
      0,
    )
  }
}

function stallsOf({ stalls }: History): Fault[] {
  const long = stalls.filter(({ from, to }) => to - from >= LONG_STALL_MS)
  return long.map(({ from, to }) => ({ kind: 'stall', from, to, heldUntil: to }))
}

/** The first record counts: a later one is void. */
function settlementsOf({ commits }: History): Map<string, Settlement> {
  return new Map(
    commits.toReversed().flatMap(({ at, seq, settled }) => settled.map((key) => [key, { at, seq }] as const)),
  )
}

function groupOf({ bufferId, groupKey }: { bufferId: string; groupKey: string }): string {
  return JSON.stringify([bufferId, groupKey])
}

function duplicateName(item: SentItem): string {
  return JSON.stringify([item.bufferId, item.groupKey, item.messageId ?? item.n])
}
