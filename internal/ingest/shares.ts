/**
 * The ingress's side of the share rule (docs/architecture/protocol.md, "Back-pressure"): owners tell each second how
 * much of their shard the large buffers hold; one that reached its share is refused, alone, until it holds a tenth
 * less.
 *
 * Invariant: only what an owner said within the last 3 s refuses anything.
 */
import { decodeShareReport, type ShareReport, sharesSubject } from '../domain/share-report.ts'
import type { Clock } from '../runtime/clock.ts'
import { GroupNames } from './group-names.ts'
import type { Messages, Shares, ShareTelemetry } from './ports.ts'

/** Older reports count for nothing: their shard is between owners, ms. */
const FRESH_MS = 3_000
/** A refused buffer is let in again below this part of its share, so that it does not flap around it. */
const ADMIT_BELOW = 0.9

export interface ReportedSharesOptions {
  readonly messages: Messages
  readonly clock: Clock
  readonly shards: number
  readonly telemetry: ShareTelemetry
}

interface Latest {
  readonly epoch: number
  /** Monotonic ms. */
  readonly at: number
}

export class ReportedShares implements Shares {
  readonly #options: ReportedSharesOptions
  readonly #names: GroupNames
  readonly #latest = new Map<number, Latest>()
  /** Uids of refused buffers by shard. Shards without any are not in it: without a full buffer there is nothing to ask. */
  readonly #full = new Map<number, Set<string>>()
  readonly #unsubscribe: (() => void)[]

  constructor(options: ReportedSharesOptions) {
    this.#options = options
    this.#names = new GroupNames(options.shards)
    this.#unsubscribe = Array.from({ length: options.shards }, (_, shard) =>
      options.messages.subscribe(sharesSubject(shard), (data) => {
        const report = decodeShareReport(data)
        if (report?.shard === shard) this.#hear(report)
      }),
    )
  }

  isOver(bufferUid: string, groupKey: string): boolean {
    if (this.#full.size === 0) return false
    const { shard } = this.#names.of(bufferUid, groupKey)
    if (!this.#full.get(shard)?.has(bufferUid)) return false
    if (this.#isFresh(shard)) return true
    this.#refuse(shard, new Set())
    return false
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
  }

  #isFresh(shard: number): boolean {
    const at = this.#latest.get(shard)?.at ?? Number.NEGATIVE_INFINITY
    return this.#options.clock.monotonic() - at <= FRESH_MS
  }

  #hear(report: ShareReport): void {
    const { shard, epoch } = report
    // Whoever lost the shard and does not know it yet still counts what the next owner has delivered.
    if (epoch < (this.#latest.get(shard)?.epoch ?? 0) && this.#isFresh(shard)) return
    this.#latest.set(shard, { epoch, at: this.#options.clock.monotonic() })
    this.#judge(report)
  }

  #judge({ shard, limit, held }: ShareReport): void {
    const before = this.#full.get(shard)
    const full = new Set<string>()
    for (const { bufferUid, bytes } of held) {
      const wasFull = before?.has(bufferUid) === true
      if (bytes < (wasFull ? limit * ADMIT_BELOW : limit)) continue
      full.add(bufferUid)
      if (!wasFull) this.#options.telemetry.shareReached({ shard, bufferUid, bytes, limit })
    }
    this.#refuse(shard, full)
  }

  /** These of the shard and no others from now on. */
  #refuse(shard: number, full: Set<string>): void {
    const before = this.#full.get(shard) ?? []
    if (full.size > 0) this.#full.set(shard, full)
    else this.#full.delete(shard)
    for (const bufferUid of before) {
      if (!full.has(bufferUid)) this.#options.telemetry.shareLeft({ shard, bufferUid })
    }
  }
}
