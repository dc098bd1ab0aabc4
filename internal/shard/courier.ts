/**
 * Attempts of sealed batches. One stalled destination must not delay other buffers of its shard, nor fill
 * memory: a buffer has a bounded number of attempts at once, and a batch that waits for its turn past a
 * budget gives its body back and is rebuilt from its items.
 */

import { idempotencyKey } from '../domain/group.ts'
import type { Batch } from '../group/model.ts'
import { Fifo } from '../runtime/fifo.ts'
import { builderOf } from './body.ts'
import type { Frames } from './frames.ts'
import type { LiveItem, OpenGroup } from './live.ts'
import type { AttemptResult, Deliverer } from './ports.ts'

/** A sealed batch with what the seal promised of its body. */
export interface SealedBatch {
  readonly group: OpenGroup
  readonly batch: Batch<LiveItem>
  readonly sha256: Uint8Array
  readonly itemsHash: Uint8Array
  /** Version of the join that built it. */
  readonly serializer: number
  readonly firstItemAt: number
  readonly lastActivityAt: number
  /** When its seal was committed, or taken over, Unix ms. */
  readonly sealedAt: number
  /** null: rebuilt from the items when it is needed. */
  body: Buffer | null
  /** Result of the last attempt of this owner. */
  last: AttemptResult | null
}

/** The items do not give the sealed body any more: nothing may be sent under its key. */
export class BodyMismatchError extends Error {
  override readonly name = 'BodyMismatchError'
}

interface Lane {
  running: number
  readonly waiting: Fifo<() => void>
}

export interface CourierOptions {
  readonly frames: Frames
  readonly deliverer: Deliverer
  /** Attempts at once a buffer and shard. */
  readonly attemptsPerBuffer: number
  /** Bytes of bodies that may wait for their turn. */
  readonly waitingBodyBudget: number
}

export class Courier {
  readonly #options: CourierOptions
  readonly #lanes = new Map<string, Lane>()
  #waitingBytes = 0
  #running = 0

  constructor(options: CourierOptions) {
    this.#options = options
  }

  /** Attempts that run now. */
  get running(): number {
    return this.#running
  }

  /**
   * One attempt, when its buffer's turn comes; null when `stillWanted` says no by then. Rejects as `bodyOf`,
   * never for what the destination does.
   */
  async attempt(sealed: SealedBatch, stillWanted: () => boolean): Promise<AttemptResult | null> {
    const lane = this.#laneOf(sealed.group.book.uid)
    if (lane.running >= this.#options.attemptsPerBuffer) await this.#turn(lane, sealed)
    lane.running++
    this.#running++
    try {
      if (!stillWanted()) return null
      const body = await this.bodyOf(sealed)
      const record = sealed.group.book.record
      if (!record || !stillWanted()) return null
      const key = idempotencyKey(sealed.group.id, sealed.batch.version)
      return await this.#options.deliverer.attempt({ record, key, body, proceed: stillWanted })
    } finally {
      this.#running--
      lane.running--
      lane.waiting.shift()?.()
      if (lane.running === 0 && lane.waiting.size === 0) this.#lanes.delete(sealed.group.book.uid)
    }
  }

  /**
   * The sealed body, from memory or from the items again. Rejects with BodyMismatchError, MissingFrameError or
   * UnknownSerializerError.
   */
  async bodyOf(sealed: SealedBatch): Promise<Buffer> {
    if (sealed.body) return sealed.body
    const { group, batch } = sealed
    const owner = group.book.record?.buffer
    if (!owner) throw new Error(`batch ${batch.version} of ${group.id} is wanted before its buffer is known`)
    const build = builderOf(sealed.serializer)
    const built = await this.#options.frames.with(batch.items, (data) =>
      build(owner, group.id, batch.segment, batch.items, data),
    )
    if (!built.sha256.equals(sealed.sha256) || !built.itemsHash.equals(sealed.itemsHash)) {
      throw new BodyMismatchError(`batch ${batch.version} of ${group.id} has another body than was sealed`)
    }
    sealed.body = built.body
    return built.body
  }

  #laneOf(uid: string): Lane {
    let lane = this.#lanes.get(uid)
    if (!lane) {
      lane = { running: 0, waiting: new Fifo() }
      this.#lanes.set(uid, lane)
    }
    return lane
  }

  async #turn(lane: Lane, sealed: SealedBatch): Promise<void> {
    const bytes = sealed.body?.length ?? 0
    if (this.#waitingBytes + bytes > this.#options.waitingBodyBudget) sealed.body = null
    const held = sealed.body ? bytes : 0
    this.#waitingBytes += held
    await new Promise<void>((resume) => lane.waiting.push(resume))
    this.#waitingBytes -= held
  }
}
