/**
 * How full the logs of the shards are that run here: each is looked at every 10 s, and somebody is told once when
 * one is nearly full, again only after it had room meanwhile.
 */
import type { Clock } from '../../runtime/clock.ts'
import type { Broker } from '../broker.ts'
import type { LogUsage, LogUsageTelemetry } from '../ports.ts'

/** Between two looks at one log, ms. */
const LOOK_EVERY_MS = 10_000
/** Shares of `max_bytes`: above the first a log is nearly full, below the second it has room again. */
const NEARLY_FULL = 0.8
const SPACIOUS = 0.7
const LOGS = ['inbox', 'journal', 'archive'] as const

export interface LogUsageMonitorOptions {
  readonly broker: Pick<Broker, (typeof LOGS)[number]>
  readonly clock: Clock
  readonly telemetry: LogUsageTelemetry
}

/** The logs of one shard. */
interface Looked {
  /** When they were last asked for, monotonic ms. */
  at: number
  usages: readonly LogUsage[]
  readonly nearlyFull: Set<LogUsage['log']>
}

export class LogUsageMonitor {
  readonly #options: LogUsageMonitorOptions
  readonly #shards = new Map<number, Looked>()

  constructor(options: LogUsageMonitorOptions) {
    this.#options = options
  }

  /** To be called each second with the shards that run here: asks for what is not known or too old. */
  look(running: ReadonlySet<number>): void {
    const now = this.#options.clock.monotonic()
    for (const shard of this.#shards.keys()) if (!running.has(shard)) this.#shards.delete(shard)
    for (const shard of running) {
      const looked = this.#shards.get(shard) ?? {
        at: Number.NEGATIVE_INFINITY,
        usages: [],
        nearlyFull: new Set(),
      }
      this.#shards.set(shard, looked)
      if (looked.at + LOOK_EVERY_MS > now) continue
      looked.at = now
      void this.#ask(shard, looked)
    }
    this.#options.telemetry.usage([...this.#shards.values()].flatMap(({ usages }) => usages))
  }

  /** `max_bytes` of the inbox; undefined while it is not known, or not limited. */
  inboxBytes(shard: number): number | undefined {
    const inbox = this.#shards.get(shard)?.usages.find(({ log }) => log === 'inbox')
    return inbox !== undefined && inbox.maxBytes > 0 ? inbox.maxBytes : undefined
  }

  async #ask(shard: number, looked: Looked): Promise<void> {
    const { broker } = this.#options
    try {
      const states = await Promise.all(LOGS.map((log) => broker[log](shard).state()))
      looked.usages = states.map(({ bytes, maxBytes }, at) => ({ shard, log: LOGS[at]!, bytes, maxBytes }))
    } catch {
      // A broker that does not answer is told of by whoever needs it for more than a look.
      return
    }
    for (const usage of looked.usages) this.#judge(usage, looked.nearlyFull)
  }

  #judge(usage: LogUsage, nearlyFull: Set<LogUsage['log']>): void {
    const { telemetry } = this.#options
    const share = usage.maxBytes > 0 ? usage.bytes / usage.maxBytes : 0
    if (share > NEARLY_FULL && !nearlyFull.has(usage.log)) {
      nearlyFull.add(usage.log)
      telemetry.nearlyFull(usage)
    } else if (share < SPACIOUS && nearlyFull.delete(usage.log)) telemetry.hasSpace(usage)
  }
}
