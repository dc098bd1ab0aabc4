/**
 * A batch that failed for good becomes a dead letter: one transaction in Postgres, fenced by the epoch,
 * repeated until Postgres takes it (the seal stays meanwhile, other groups go on). Only then may the journal
 * say `dead`. Large bodies are uploaded before, and wait for each other alone, so small ones pass them.
 */

import type { DlqReason } from '../../domain/model.ts'
import { retry } from '../../runtime/retry.ts'
import { Semaphore } from '../../runtime/semaphore.ts'
import { BodyConflictError, type DeadBatch, type DeadWrite, FencedError } from '../ports.ts'
import { summarize } from './body.ts'
import type { DeliveryScheduler, SealedBatch } from './delivery-scheduler.ts'
import type { BatchesOwner } from './owner.ts'

const RETRY_MS = 500

export interface DeadLetterWriterOptions extends BatchesOwner {
  readonly scheduler: DeliveryScheduler
}

/** Bodies held at once while Postgres is slow or away; other batches wait without theirs. */
const WRITES_AT_ONCE = 8
/** Of a node, however many shards it runs: what the line to Postgres carries, and memory holds, beside the small ones. */
export const LARGE_WRITES_AT_ONCE = 2
/** Bytes of a body. Half a second over a line of 20 Mbit/s. */
const LARGE_BYTES = 1024 * 1024

export class DeadLetterWriter {
  readonly #options: DeadLetterWriterOptions
  readonly #writes = new Semaphore(WRITES_AT_ONCE)

  constructor(options: DeadLetterWriterOptions) {
    this.#options = options
  }

  /** Resolves once Postgres holds it, or with null, nothing done, once the owner has ended. Rejects with FencedError, BodyConflictError, BodyMismatchError, MissingMessageError. */
  async write(sealed: SealedBatch, reason: DlqReason): Promise<DeadWrite | null> {
    const { largeWrites, ended } = this.#options
    const writes = isLarge(sealed) ? largeWrites : this.#writes
    if (!writes.tryAcquire()) {
      sealed.body = null
      await writes.acquire()
    }
    try {
      if (ended()) return null
      return await this.#store(await this.#row(sealed, reason))
    } finally {
      writes.release()
    }
  }

  #store(row: DeadBatch): Promise<DeadWrite> {
    const { fence, projector, deadLetters, raised, clock, randomness, ended, onProblem } = this.#options
    const write = async () => {
      await raised
      await deadLetters.upload(fence, row)
      // Deliveries before this one reset the buffer's count: they are counted first.
      await projector.flush()
      return await deadLetters.write(fence, row)
    }
    const onFailure = (error: unknown) => {
      if (error instanceof FencedError || error instanceof BodyConflictError || ended()) throw error
      onProblem('a dead letter cannot be stored', error)
    }
    // Not in step: writes that came too late for one another would do so again.
    const fraction = () => randomness.fraction()
    return retry(write, { clock, pauseMs: RETRY_MS, fraction, onFailure })
  }

  async #row(sealed: SealedBatch, reason: DlqReason): Promise<DeadBatch> {
    const { group, batch, seal, last } = sealed
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
      lastResponse: last?.responseBody ?? null,
      attempt: Math.max(0, batch.attempt - 1),
      itemCount: batch.items.length,
      segment: batch.segment,
      firstItemAt: seal.firstItemAt,
      lastActivityAt: seal.lastActivityAt,
      body,
      bodySha256: seal.bodySha256,
      createdAt: this.#options.clock.now(),
      ...summary,
    }
  }
}

/** Sizes of items include what a body repeats of them. */
function isLarge({ body, batch }: SealedBatch): boolean {
  const bytes = body?.length ?? batch.items.reduce((sum, { size }) => sum + size, 0)
  return bytes > LARGE_BYTES
}
