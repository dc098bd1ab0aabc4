/**
 * A batch that failed for good becomes a dead letter: one transaction in Postgres, fenced by the epoch,
 * repeated until Postgres takes it (the seal stays meanwhile, other groups go on). Only then may the journal
 * say `dead`.
 */

import type { DlqReason } from '../../domain/model.ts'
import type { Clock, Randomness } from '../../runtime/clock.ts'
import { retry } from '../../runtime/retry.ts'
import { Semaphore } from '../../runtime/semaphore.ts'
import type { PayloadCache } from '../held/payload-cache.ts'
import { BodyConflictError, type DeadBatch, type DeadLetters, type Fence, FencedError } from '../ports.ts'
import { summarize } from './body.ts'
import type { DeliveryScheduler, SealedBatch } from './delivery-scheduler.ts'
import type { Projector } from './projector.ts'

const RETRY_MS = 500

export interface DeadLetterWriterOptions {
  readonly fence: Fence
  readonly clock: Clock
  readonly randomness: Randomness
  readonly payloads: PayloadCache
  readonly scheduler: DeliveryScheduler
  readonly deadLetters: DeadLetters
  readonly projector: Projector
  /** Resolves when Postgres knows this epoch. */
  readonly raised: Promise<void>
  readonly onProblem: (error: unknown) => void
}

/** Bodies held at once while Postgres is slow or away; other batches wait without theirs. */
const WRITES_AT_ONCE = 8

export class DeadLetterWriter {
  readonly #options: DeadLetterWriterOptions
  readonly #writes = new Semaphore(WRITES_AT_ONCE)

  constructor(options: DeadLetterWriterOptions) {
    this.#options = options
  }

  /** Resolves once Postgres holds it. Rejects with FencedError, BodyConflictError, BodyMismatchError, MissingMessageError. */
  async write(sealed: SealedBatch, reason: DlqReason, stopped: () => boolean): Promise<{ paused: boolean }> {
    if (!this.#writes.tryAcquire()) {
      sealed.body = null
      await this.#writes.acquire()
    }
    try {
      return await this.#store(await this.#row(sealed, reason), stopped)
    } finally {
      this.#writes.release()
    }
  }

  #store(row: DeadBatch, stopped: () => boolean): Promise<{ paused: boolean }> {
    const { fence, projector, deadLetters, raised, clock, onProblem } = this.#options
    const write = async () => {
      await raised
      // Deliveries before this one reset the buffer's count: they are counted first.
      await projector.flush()
      return await deadLetters.write(fence, row)
    }
    const onFailure = (error: unknown) => {
      if (error instanceof FencedError || error instanceof BodyConflictError || stopped()) throw error
      onProblem(error)
    }
    return retry(write, { clock, pauseMs: RETRY_MS, onFailure })
  }

  async #row(sealed: SealedBatch, reason: DlqReason): Promise<DeadBatch> {
    const { group, batch, last } = sealed
    const body = await this.#options.scheduler.bodyOf(sealed)
    const buffer = group.buffer.record!.buffer
    const summary = await this.#options.payloads.with(batch.items, (data) => summarize(batch.items, data))
    return {
      dlqId: `dlq_${Buffer.from(this.#options.randomness.bytes(12)).toString('hex')}`,
      bufferUid: group.buffer.uid,
      customerId: buffer.customerId,
      projectId: buffer.projectId,
      bufferId: buffer.bufferId,
      groupId: group.id,
      version: batch.version,
      reason,
      lastError: last?.error ?? 'the destination failed before the last restart',
      lastStatusCode: last?.statusCode ?? 0,
      attempt: Math.max(0, batch.attempt - 1),
      itemCount: batch.items.length,
      segment: batch.segment,
      firstItemAt: sealed.firstItemAt,
      lastActivityAt: sealed.lastActivityAt,
      body,
      bodySha256: sealed.sha256,
      createdAt: this.#options.clock.now(),
      ...summary,
    }
  }
}
