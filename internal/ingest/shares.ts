/**
 * The ingress's side of the share rule (docs/architecture/protocol.md, "Back-pressure"): owners tell each second how
 * much of their shard the large buffers and customers hold; one that reached its share is refused, alone, until it holds
 * a tenth less.
 *
 * Invariant: only what an owner said within the last 3 s refuses anything.
 */
import type { BufferRecord } from '../domain/model.ts'
import { decodeShareReport, type Holdings, type ShareReport, sharesSubject } from '../domain/share-report.ts'
import type { Clock } from '../runtime/clock.ts'
import { GroupNames } from './group-names.ts'
import type { Holder, Messages, Shares, ShareTelemetry } from './ports.ts'

/** Older reports count for nothing: their shard is between owners, ms. */
const FRESH_MS = 3_000
/** Whoever is refused is let in again below this part of the share, so that it does not flap around it. */
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

/** Ids of those who hold their whole share of one shard. */
type Full = Readonly<Record<Holder, ReadonlySet<string>>>

const NOBODY: Full = { buffer: new Set(), customer: new Set() }
const HOLDERS: readonly Holder[] = ['buffer', 'customer']

export class ReportedShares implements Shares {
  readonly #options: ReportedSharesOptions
  readonly #names: GroupNames
  readonly #latest = new Map<number, Latest>()
  /** By shard. Shards where nobody is full are not in it: then there is nothing to ask. */
  readonly #full = new Map<number, Full>()
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

  over({ uid, buffer }: BufferRecord, groupKey: string): Holder | null {
    if (this.#full.size === 0) return null
    const { shard } = this.#names.of(uid, groupKey)
    const full = this.#full.get(shard)
    if (full === undefined) return null
    const holder = full.buffer.has(uid) ? 'buffer' : full.customer.has(buffer.customerId) ? 'customer' : null
    if (holder === null || this.#isFresh(shard)) return holder
    this.#refuse(shard, NOBODY)
    return null
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
    this.#refuse(shard, {
      buffer: this.#fullOf(shard, 'buffer', report.buffers),
      customer: this.#fullOf(shard, 'customer', report.customers),
    })
  }

  /** Of one kind, with those that were full before and are not far below. */
  #fullOf(shard: number, holder: Holder, { limit, held }: Holdings): Set<string> {
    const before = this.#full.get(shard)?.[holder]
    const full = new Set<string>()
    for (const { id, bytes } of held) {
      const wasFull = before?.has(id) === true
      if (bytes < (wasFull ? limit * ADMIT_BELOW : limit)) continue
      full.add(id)
      if (!wasFull) this.#options.telemetry.shareReached({ shard, holder, id, bytes, limit })
    }
    return full
  }

  /** These of the shard and no others from now on. */
  #refuse(shard: number, full: Full): void {
    const before = this.#full.get(shard) ?? NOBODY
    if (full.buffer.size + full.customer.size > 0) this.#full.set(shard, full)
    else this.#full.delete(shard)
    for (const holder of HOLDERS) {
      for (const id of before[holder]) {
        if (!full[holder].has(id)) this.#options.telemetry.shareLeft({ shard, holder, id })
      }
    }
  }
}
