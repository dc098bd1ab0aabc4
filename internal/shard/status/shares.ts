/**
 * The owner's side of the share rule (docs/architecture/protocol.md, "Back-pressure"): each second one core message a
 * shard names the buffers and customers that hold much of it. Ingresses refuse by it; where nobody publishes, the log's own limit
 * holds.
 */
import { encodeShareReport, type Holding, notable, sharesSubject } from '../../domain/share-report.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Broker } from '../broker.ts'
import type { LogUsageTelemetry } from '../ports.ts'
import type { Shard } from '../shard.ts'
import { LogUsageMonitor } from './log-usage.ts'

/**
 * Of the inbox's `max_bytes`, for one buffer. A quarter: what is live pins all that is behind it until a keep
 * carries it away, and before that comes (`HousekeepingLimits.fullShare`) others must still find room.
 */
export const SHARE = 0.25

/**
 * The limit of a customer moves with what is free, so that whoever comes always finds room, however many others hold all
 * they may. It is the dynamic threshold of A. K. Choudhury and E. L. Hahne, "Dynamic queue length thresholds for
 * shared-memory packet switches" (IEEE/ACM Transactions on Networking 6(2), 1998).
 */
export const CUSTOMER_SHARE = {
  /** Of the inbox's `max_bytes`, what all customers may hold together. The rest is for what passes through. */
  all: 0.75,
  /** One may hold so many times what is free of that: alone a half of the inbox, one of two 0.3 of it. */
  ofFree: 2,
  /** Of the inbox's `max_bytes`, what one may hold in any case. */
  least: 0.01,
} as const

const PUBLISH_EVERY_MS = 1_000

/** What a report needs of a shard. */
export type Reporting = Pick<Shard, 'state' | 'epoch' | 'buffered'>

export interface SharePublisherOptions {
  readonly broker: Pick<Broker, 'inbox' | 'journal' | 'archive' | 'publish'>
  readonly clock: Clock
  /** The shards in the hands of this node. */
  readonly running: () => Iterable<readonly [shard: number, Reporting]>
  readonly telemetry: LogUsageTelemetry
}

export class SharePublisher {
  readonly #options: SharePublisherOptions
  readonly #usage: LogUsageMonitor
  #cancel: () => void = () => {}

  constructor(options: SharePublisherOptions) {
    this.#options = options
    this.#usage = new LogUsageMonitor(options)
  }

  start(): void {
    this.#publish()
    this.#cancel = this.#options.clock.after(PUBLISH_EVERY_MS, () => this.start())
  }

  stop(): void {
    this.#cancel()
  }

  #publish(): void {
    const running = new Map(this.#options.running())
    this.#usage.look(new Set(running.keys()))
    for (const [number, shard] of running) {
      const inboxBytes = this.#usage.inboxBytes(number)
      // A replay has not yet found all that its shard holds: half a report would let a full buffer in.
      if (shard.state === 'running' && inboxBytes !== undefined) this.#report(number, shard, inboxBytes)
    }
  }

  #report(number: number, shard: Reporting, inboxBytes: number): void {
    const { buffers, customers, total } = heldOf(shard)
    const report = {
      shard: number,
      epoch: shard.epoch,
      buffers: notable(buffers, Math.floor(inboxBytes * SHARE)),
      customers: notable(customers, customerLimit(inboxBytes, total)),
    }
    this.#options.broker.publish(sharesSubject(number), encodeShareReport(report))
  }
}

/** What one customer may hold of an inbox of which all together hold `total`, bytes. */
export function customerLimit(inboxBytes: number, total: number): number {
  const { all, ofFree, least } = CUSTOMER_SHARE
  return Math.floor(Math.max(inboxBytes * least, ofFree * (inboxBytes * all - total)))
}

/** `total`: also of buffers whose customer is not known yet. */
function heldOf(shard: Reporting): { buffers: Holding[]; customers: Holding[]; total: number } {
  const buffers: Holding[] = []
  const ofCustomers = new Map<string, number>()
  let total = 0
  for (const { uid, record, storedBytes } of shard.buffered()) {
    buffers.push({ id: uid, bytes: storedBytes })
    total += storedBytes
    if (record === undefined) continue
    const { customerId } = record.buffer
    ofCustomers.set(customerId, (ofCustomers.get(customerId) ?? 0) + storedBytes)
  }
  return { buffers, customers: Array.from(ofCustomers, ([id, bytes]) => ({ id, bytes })), total }
}
