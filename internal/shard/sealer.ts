/** Closes batches: builds the body, commits the seal; the sequence of that commit is the version (design, section 5). */

import type { Batch } from '../group/model.ts'
import type { Clock } from '../runtime/clock.ts'
import { type BatchBody, buildBody, SERIALIZER } from './body.ts'
import type { SealedBatch } from './courier.ts'
import { type FrameData, type Frames, MissingFrameError } from './frames.ts'
import type { Journal } from './journal.ts'
import type { LiveItem, OpenGroup } from './live.ts'
import type { ShardTelemetry } from './ports.ts'

export interface SealerOptions {
  readonly shard: number
  readonly clock: Clock
  readonly journal: Journal
  readonly frames: Frames
  readonly telemetry: ShardTelemetry
}

export class Sealer {
  readonly #options: SealerOptions

  constructor(options: SealerOptions) {
    this.#options = options
  }

  /**
   * Calls `sealed` once the seal is committed. Not at all when `wanted` says no by the time the body is
   * there. Rejects with MissingFrameError after a commit proved that it is no successor's purge, or with
   * what the proof rejects with.
   */
  async seal(
    group: OpenGroup,
    batch: Batch<LiveItem>,
    wanted: () => boolean,
    sealed: (sealed: SealedBatch, version: number) => void,
  ): Promise<void> {
    const owner = group.book.record!.buffer
    const build = (data: FrameData) => buildBody(owner, group.id, batch.segment, batch.items, data)
    const ready = this.#options.frames.with(batch.items, build)
    const built = ready instanceof Promise ? await this.#proven(ready, wanted) : ready
    if (built === undefined || !wanted()) return
    this.#commit(group, batch, built, sealed)
  }

  /**
   * Nothing follows from a missing message before a successful commit: a stale owner sees the purges of its successor.
   * undefined: there was none, and no batch is wanted any more.
   */
  async #proven<T>(reading: Promise<T>, wanted: () => boolean): Promise<T | undefined> {
    try {
      return await reading
    } catch (error) {
      if (error instanceof MissingFrameError) {
        if (!wanted()) return undefined
        await this.#options.journal.prove()
      }
      throw error
    }
  }

  #commit(
    group: OpenGroup,
    batch: Batch<LiveItem>,
    built: BatchBody,
    sealed: (sealed: SealedBatch, version: number) => void,
  ): void {
    const { body, sha256, itemsHash, firstItemAt, lastActivityAt } = built
    const record = {
      type: 'seal',
      groupId: group.id,
      bufferUid: group.book.uid,
      ...{ segment: batch.segment, reason: batch.reason, firstItemAt, lastActivityAt, itemsHash },
      positions: batch.items,
      bodySha256: sha256,
      serializer: SERIALIZER,
    } as const
    this.#options.journal.write(record, (version, applied) => {
      if (!applied) throw new Error(`the seal ${version} of ${group.id} is void`)
      const sealedAt = this.#options.clock.now()
      this.#tell(group, batch, version, sealedAt)
      const promise = { sha256, itemsHash, serializer: SERIALIZER, firstItemAt, lastActivityAt }
      sealed({ ...{ group, batch, body, sealedAt, last: null }, ...promise }, version)
    })
  }

  #tell(group: OpenGroup, batch: Batch<LiveItem>, version: number, at: number): void {
    this.#options.telemetry.flush({
      shard: this.#options.shard,
      groupId: group.id,
      bufferId: group.book.record!.buffer.bufferId,
      version,
      reason: batch.reason,
      items: batch.items.length,
      payloadBytes: batch.bytes,
      latenessMs: Math.max(0, at - batch.dueAt),
      segment: batch.segment,
    })
  }
}
