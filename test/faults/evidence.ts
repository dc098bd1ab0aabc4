/** A history indexed for the rules of the checker. */
import type { Batch, Delivery, Fault, History, SentItem } from './history.ts'

export interface Violation {
  readonly rule: string
  readonly detail: unknown
}

export class Evidence {
  readonly history: History
  /** Every delivered and every dead batch. */
  readonly batches: readonly Batch[]
  /** Deliveries of an idempotency key, in order of arrival. */
  readonly attempts: ReadonlyMap<string, Delivery[]>
  /** Deliveries of a group, in order of arrival. */
  readonly deliveriesOfGroups: ReadonlyMap<string, Delivery[]>
  readonly #sent: ReadonlyMap<number, SentItem>
  readonly #duplicates: ReadonlyMap<string, SentItem[]>
  readonly #settled = new Set<number>()
  /** When an item was last seen on its way out: its last delivery, or its dead letter. */
  readonly #lastSeen = new Map<number, number>()
  readonly #firstSeen = new Map<number, number>()
  readonly #overAt = new Map<number, number>()
  /** What the journals tell begins here, at the latest of them. */
  readonly #recordsBegin: number

  constructor(history: History) {
    this.history = history
    this.batches = [...history.deliveries, ...history.dead]
    this.attempts = Map.groupBy(history.deliveries, ({ key }) => key)
    this.deliveriesOfGroups = Map.groupBy(history.deliveries, groupOf)
    this.#sent = new Map(history.sent.map((item) => [item.n, item]))
    this.#duplicates = Map.groupBy(history.sent, duplicateName)
    for (const { items, at, status } of history.deliveries) {
      for (const { n } of items) this.#see(n, at, status >= 200 && status < 300)
    }
    for (const { items, createdAt } of history.dead) for (const { n } of items) this.#see(n, createdAt, true)
    const settledAt = new Map(
      history.commits.toReversed().flatMap(({ at, settled }) => settled.map((key) => [key, at] as const)),
    )
    for (const { key, items } of this.batches) {
      const at = settledAt.get(key)
      if (at !== undefined) for (const { n } of items) this.#overAt.set(n, at)
    }
    const firsts = new Map(history.commits.toReversed().map(({ shard, at }) => [shard, at]))
    this.#recordsBegin = Math.max(0, ...firsts.values())
  }

  #see(n: number, at: number, settles: boolean): void {
    this.#firstSeen.set(n, Math.min(at, this.#firstSeen.get(n) ?? at))
    this.#lastSeen.set(n, Math.max(at, this.#lastSeen.get(n) ?? 0))
    if (settles) this.#settled.add(n)
  }

  sent(n: number): SentItem | undefined {
    return this.#sent.get(n)
  }

  /** Acknowledged with 2xx, or in the dead letter queue. */
  settled(n: number): boolean {
    return this.#settled.has(n)
  }

  /** Unix ms; undefined: the item itself never went out. */
  lastSeen(n: number): number | undefined {
    return this.#lastSeen.get(n)
  }

  /**
   * When the record was stored that says that it is over: seconds after its last delivery where that waits for Postgres or
   * the broker. A record that a purge took is older than what is left; undefined: the item itself never went out.
   */
  overAt(n: number): number | undefined {
    const seen = this.#lastSeen.get(n)
    return seen && (this.#overAt.get(n) ?? Math.max(seen, this.#recordsBegin))
  }

  firstSeen(n: number): number | undefined {
    return this.#firstSeen.get(n)
  }

  /** Other requests with the same explicit id in the same group. */
  duplicatesOf(item: SentItem): SentItem[] {
    if (item.messageId === null) return []
    return (this.#duplicates.get(duplicateName(item)) ?? []).filter((duplicate) => duplicate !== item)
  }

  /** Every accepted item, or a duplicate of it, was seen on its way out. */
  get allSeen(): boolean {
    return this.history.sent.every(
      (item) =>
        item.answer?.status !== 202 ||
        [item, ...this.duplicatesOf(item)].some(({ n }) => this.lastSeen(n) !== undefined),
    )
  }

  /** Faults that touch this time. */
  faultsBetween(from: number, to: number): Fault[] {
    return this.history.faults.filter((fault) => fault.from <= to && fault.to >= from)
  }
}

function groupOf({ bufferId, groupKey }: { bufferId: string; groupKey: string }): string {
  return JSON.stringify([bufferId, groupKey])
}

function duplicateName(item: SentItem): string {
  return JSON.stringify([item.bufferId, item.groupKey, item.messageId ?? item.n])
}
