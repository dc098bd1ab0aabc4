/**
 * A batch that failed for good becomes a dead letter: one transaction in Postgres, fenced by the epoch,
 * repeated until Postgres takes it (the seal stays meanwhile, other groups go on). Only then may the journal
 * say `dead`.
 */
import type { DlqReason } from '../domain/model.ts'
import type { Clock, Randomness } from '../runtime/clock.ts'
import { summarize } from './body.ts'
import type { Courier, SealedBatch } from './courier.ts'
import type { Frames } from './frames.ts'
import { BodyConflictError, type DeadBatch, type DeadLetters, type Fence, FencedError } from './ports.ts'
import type { Projector } from './projector.ts'

const RETRY_MS = 500

export interface BurialOptions {
  readonly fence: Fence
  readonly clock: Clock
  readonly randomness: Randomness
  readonly frames: Frames
  readonly courier: Courier
  readonly deadLetters: DeadLetters
  readonly projector: Projector
  /** Resolves when Postgres knows this epoch. */
  readonly raised: Promise<void>
  readonly onProblem: (error: unknown) => void
}

/** Bodies held at once while Postgres is slow or away; other batches wait without theirs. */
const BURIALS_AT_ONCE = 8

export class Burial {
  readonly #options: BurialOptions
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(options: BurialOptions) {
    this.#options = options
  }

  /** Resolves once Postgres holds it. Rejects with FencedError, BodyConflictError, BodyMismatchError, MissingFrameError. */
  async bury(sealed: SealedBatch, reason: DlqReason, stopped: () => boolean): Promise<{ paused: boolean }> {
    if (this.#running >= BURIALS_AT_ONCE) {
      sealed.body = null
      await new Promise<void>((resume) => this.#waiting.push(resume))
    }
    this.#running++
    try {
      return await this.#store(await this.#row(sealed, reason), stopped)
    } finally {
      this.#running--
      this.#waiting.shift()?.()
    }
  }

  async #store(row: DeadBatch, stopped: () => boolean): Promise<{ paused: boolean }> {
    const { fence, projector, deadLetters, raised } = this.#options
    for (;;) {
      try {
        await raised
        // Deliveries before this one reset the buffer's count: they are counted first.
        await projector.flush()
        return await deadLetters.bury(fence, row)
      } catch (error) {
        if (error instanceof FencedError || error instanceof BodyConflictError || stopped()) throw error
        this.#options.onProblem(error)
        await new Promise<void>((resume) => this.#options.clock.after(RETRY_MS, resume))
      }
    }
  }

  async #row(sealed: SealedBatch, reason: DlqReason): Promise<DeadBatch> {
    const { group, batch, last } = sealed
    const body = await this.#options.courier.bodyOf(sealed)
    const buffer = group.book.record!.buffer
    const summary = await this.#options.frames.with(batch.items, (data) => summarize(batch.items, data))
    return {
      dlqId: `dlq_${Buffer.from(this.#options.randomness.bytes(12)).toString('hex')}`,
      bufferUid: group.book.uid,
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
