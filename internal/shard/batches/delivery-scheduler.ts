/**
 * Attempts of sealed batches. One stalled destination must not delay other buffers of its shard, nor fill
 * memory: a buffer has a bounded number of attempts at once, and a batch that waits for its turn past a
 * budget gives its body back and is rebuilt from its items. So does one that finds no room among those that
 * wait for its destination; it is only rebuilt once there is some.
 */

import { idempotencyKey } from '../../domain/group.ts'
import type { Batch } from '../../group/model.ts'
import { Semaphore } from '../../runtime/semaphore.ts'
import type { LiveItem, OpenGroup } from '../held/live.ts'
import type { SealRecord } from '../journal/records.ts'
import type { AttemptResult } from '../ports.ts'
import { builderOf } from './body.ts'
import type { BatchesOwner } from './owner.ts'

/** A sealed batch with what the seal promised of its body. */
export interface SealedBatch {
  readonly group: OpenGroup
  readonly batch: Batch<LiveItem>
  readonly seal: SealRecord
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

const NO_ANSWER = { delivered: false, statusCode: 0, errorClass: null, durationMs: 0, responseBody: null }

/** Of a batch whose buffer is removed: it becomes a dead letter. */
const NOWHERE: AttemptResult = {
  ...NO_ANSWER,
  retryable: false,
  error: 'the buffer was deleted, and its configuration is removed',
}

/** Of an attempt that did not begin. */
export const UNSENT: AttemptResult = { ...NO_ANSWER, retryable: true, error: null, unsent: true }

/** Of the bytes of payloads in memory, for bodies that wait for their turn. */
const WAITING_SHARE = 1 / 4

export type DeliverySchedulerOptions = Pick<BatchesOwner, 'payloads' | 'deliverer' | 'limits'>

export class DeliveryScheduler {
  readonly #options: DeliverySchedulerOptions
  /** Attempts of each buffer that has one under way, by its uid. */
  readonly #attempts = new Map<string, Semaphore>()
  #waitingBytes = 0

  constructor(options: DeliverySchedulerOptions) {
    this.#options = options
  }

  /**
   * One attempt, when its buffer's turn comes; null when `stillWanted` says no by then. `onBegin`: its request is about
   * to be sent. Rejects as `bodyOf`, never for what the destination does.
   */
  async attempt(
    sealed: SealedBatch,
    stillWanted: () => boolean,
    onBegin: () => void = () => {},
  ): Promise<AttemptResult | null> {
    const { uid } = sealed.group.buffer
    const attempts = this.#attemptsOf(uid)
    if (!attempts.tryAcquire()) await this.#turn(attempts, sealed)
    try {
      if (!stillWanted()) return null
      if (!sealed.body && !this.#hasRoom(sealed)) return UNSENT
      const body = await this.bodyOf(sealed)
      const { buffer, id } = sealed.group
      const record = () => buffer.record!
      // The group may hear of a secret that cannot be read a moment later than its buffer.
      const mayBegin = () => !record().unreadable?.delivery && stillWanted()
      if (!buffer.record || !mayBegin()) return null
      if (record().removed) return NOWHERE
      const proceed = () => {
        const begins = mayBegin() && !record().removed
        if (begins) onBegin()
        return begins
      }
      const key = idempotencyKey(id, sealed.batch.version)
      const result = await this.#options.deliverer.attempt({ record, key, body, proceed })
      if (result.unsent) sealed.body = null
      return result
    } finally {
      attempts.release()
      if (attempts.held === 0) this.#attempts.delete(uid)
    }
  }

  /**
   * The sealed body, from memory or from the items again. Rejects with BodyMismatchError, MissingMessageError or
   * UnknownSerializerError.
   */
  async bodyOf(sealed: SealedBatch): Promise<Buffer> {
    if (sealed.body) return sealed.body
    const { group, batch, seal } = sealed
    const owner = group.buffer.record?.buffer
    if (!owner) throw new Error(`batch ${batch.version} of ${group.id} is wanted before its buffer is known`)
    const build = builderOf(seal.serializer)
    const built = await this.#options.payloads.with(batch.items, (data) =>
      build(owner, group.id, batch.segment, batch.items, data),
    )
    if (!built.sha256.equals(seal.bodySha256) || !built.itemsHash.equals(seal.itemsHash)) {
      throw new BodyMismatchError(`batch ${batch.version} of ${group.id} has another body than was sealed`)
    }
    sealed.body = built.body
    return built.body
  }

  #hasRoom({ group, batch }: SealedBatch): boolean {
    const { record } = group.buffer
    return !record || this.#options.deliverer.hasRoom(record, batch.bytes)
  }

  #attemptsOf(uid: string): Semaphore {
    let attempts = this.#attempts.get(uid)
    if (!attempts) {
      attempts = new Semaphore(this.#options.limits.attemptsPerBuffer)
      this.#attempts.set(uid, attempts)
    }
    return attempts
  }

  async #turn(attempts: Semaphore, sealed: SealedBatch): Promise<void> {
    const bytes = sealed.body?.length ?? 0
    const most = this.#options.limits.payloadBudget * WAITING_SHARE
    if (this.#waitingBytes + bytes > most) sealed.body = null
    const held = sealed.body ? bytes : 0
    this.#waitingBytes += held
    await attempts.acquire()
    this.#waitingBytes -= held
  }
}
