/**
 * The last pack of each shard that the broker acknowledged to this ingress, and whether the broker still has it
 * (docs/architecture/protocol.md, "Lost tail"). An owner misses what it has read. What nobody had read yet is known to
 * its sender alone.
 */

import type { Clock } from '../runtime/clock.ts'
import { sleep } from '../runtime/sleep.ts'
import type { LostPackTelemetry, StoredPacks } from './ports.ts'

/** Between two checks of a log that does not answer, ms. */
const CHECK_PAUSE_MS = 500
/** A server that is cut off from its peers takes itself for the leader for up to 20 s, and lacks what came since, ms. */
const LATE_MS = 25_000

interface Acknowledged {
  readonly seq: number
  readonly packId: string
  isBeingChecked: boolean
  /** A check may find what the next pack has told already. */
  isToldLost: boolean
}

export interface AcknowledgedPacksOptions {
  shards: number
  /** The inbox of a shard. */
  logOf: (shard: number) => StoredPacks
  clock: Clock
  telemetry: LostPackTelemetry
}

export class AcknowledgedPacks {
  readonly #options: AcknowledgedPacksOptions
  readonly #last: (Acknowledged | null)[]
  #closed = false

  constructor(options: AcknowledgedPacksOptions) {
    this.#options = options
    this.#last = Array.from({ length: options.shards }, () => null)
  }

  /** Packs of a shard are acknowledged one after the other, so their sequences rise: one that does not stands where an earlier one was. */
  acknowledged(shard: number, seq: number, packId: string): void {
    const last = this.#last[shard]
    if (last && seq <= last.seq) this.#tell(shard, last, seq)
    this.#last[shard] = { seq, packId, isBeingChecked: false, isToldLost: false }
  }

  /** To be called after each reconnect to the broker. Asks until it is told, also over further reconnects. */
  check(): void {
    for (const [shard, last] of this.#last.entries()) {
      if (last && !last.isToldLost && !last.isBeingChecked) void this.#check(shard, last)
    }
  }

  close(): void {
    this.#closed = true
  }

  async #check(shard: number, last: Acknowledged): Promise<void> {
    const { clock, logOf } = this.#options
    last.isBeingChecked = true
    for (let missing = false; !this.#closed; ) {
      const end = await endWithout(logOf(shard), last).catch(() => undefined)
      if (end === null) break
      if (end !== undefined && missing) return this.#tell(shard, last, end)
      missing = end !== undefined
      await sleep(clock, missing ? LATE_MS : CHECK_PAUSE_MS)
    }
    last.isBeingChecked = false
  }

  #tell(shard: number, last: Acknowledged, end: number): void {
    if (last.isToldLost) return
    last.isToldLost = true
    this.#options.telemetry.lostPacks({ shard, acknowledged: last.seq, end })
  }
}

/** null: the log has the pack, or purged it, so an owner has read it. Else where the log ends. */
async function endWithout(log: StoredPacks, { seq, packId }: Acknowledged): Promise<number | null> {
  const { firstSeq, lastSeq } = await log.state()
  if (seq > lastSeq) return lastSeq
  if (seq < firstSeq) return null
  const message = await log.get(seq)
  if (message) return message.msgId === packId ? null : lastSeq
  return seq < (await log.state()).firstSeq ? null : lastSeq
}
