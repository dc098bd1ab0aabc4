/**
 * Closes batches: builds the body, commits the seal; the sequence of that commit is the version
 * (docs/architecture/protocol.md, "Seals and versions").
 */

import type { Batch } from '../../group/model.ts'
import type { LiveItem, OpenGroup } from '../held/live.ts'
import type { BytesOf } from '../held/payload-cache.ts'
import { type BatchBody, buildBody, SERIALIZER } from './body.ts'
import type { SealedBatch } from './delivery-scheduler.ts'
import type { BatchesOwner } from './owner.ts'

export type SealerOptions = Pick<BatchesOwner, 'shard' | 'clock' | 'journal' | 'payloads' | 'telemetry'>

interface SealEvents {
  /** Whether the batch is still to be sealed; asked when its body is there. */
  wanted(): boolean
  /** The seal is committed. `version`: the sequence of that commit. */
  sealed(sealed: SealedBatch, version: number): void
}

export class Sealer {
  readonly #options: SealerOptions

  constructor(options: SealerOptions) {
    this.#options = options
  }

  /** Builds the body and commits the seal. Rejects with MissingMessageError, and as reading does; not once the batch is wanted no more. */
  async seal(group: OpenGroup, batch: Batch<LiveItem>, events: SealEvents): Promise<void> {
    const owner = group.buffer.record!.buffer
    const build = (data: BytesOf) => buildBody(owner, group.id, batch.segment, batch.items, data)
    const ready = this.#options.payloads.with(batch.items, build)
    const built = ready instanceof Promise ? await unlessUnwanted(ready, events) : ready
    if (built === undefined || !events.wanted()) return
    this.#commit(group, batch, built, events)
  }

  #commit(group: OpenGroup, batch: Batch<LiveItem>, built: BatchBody, events: SealEvents): void {
    const { body, sha256, itemsHash, firstItemAt, lastActivityAt } = built
    const seal = {
      type: 'seal',
      groupId: group.id,
      bufferUid: group.buffer.uid,
      segment: batch.segment,
      reason: batch.reason,
      firstItemAt,
      lastActivityAt,
      itemsHash,
      positions: batch.items,
      bodySha256: sha256,
      serializer: SERIALIZER,
    } as const
    this.#options.journal.write(seal, (version, applied) => {
      if (!applied) throw new Error(`the seal ${version} of ${group.id} is void`)
      const sealedAt = this.#options.clock.now()
      this.#tell(group, batch, version, sealedAt)
      events.sealed({ group, batch, seal, body, sealedAt, last: null }, version)
    })
  }

  #tell(group: OpenGroup, batch: Batch<LiveItem>, version: number, at: number): void {
    this.#options.telemetry.flush({
      shard: this.#options.shard,
      groupId: group.id,
      bufferId: group.buffer.record!.buffer.bufferId,
      version,
      reason: batch.reason,
      items: batch.items.length,
      payloadBytes: batch.bytes,
      latenessMs: Math.max(0, at - batch.dueAt),
      segment: batch.segment,
    })
  }
}

/** undefined: it failed, and nobody wants it any more. */
function unlessUnwanted<T>(work: Promise<T>, { wanted }: SealEvents): Promise<T | undefined> {
  return work.catch((error: unknown) => {
    if (wanted()) throw error
    return undefined
  })
}
