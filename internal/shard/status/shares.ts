/**
 * The owner's side of the share rule (docs/architecture/protocol.md, "Back-pressure"): each second one core message a
 * shard names the buffers that hold much of it. Ingresses refuse by it; where nobody publishes, the log's own limit
 * holds.
 */
import { encodeShareReport, notable, sharesSubject } from '../../domain/share-report.ts'
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

const PUBLISH_EVERY_MS = 1_000

/** What a report needs of a shard. */
export type Reporting = Pick<Shard, 'state' | 'epoch' | 'buffered'>

export interface SharePublisherOptions {
  readonly broker: Pick<Broker, 'inbox' | 'journal' | 'publish'>
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
    const limit = Math.floor(inboxBytes * SHARE)
    const held = notable(storedShares(shard), limit)
    const report = { shard: number, epoch: shard.epoch, limit, held }
    this.#options.broker.publish(sharesSubject(number), encodeShareReport(report))
  }
}

function* storedShares(shard: Reporting): Generator<{ bufferUid: string; bytes: number }> {
  for (const { bufferUid, storedBytes } of shard.buffered()) yield { bufferUid, bytes: storedBytes }
}
