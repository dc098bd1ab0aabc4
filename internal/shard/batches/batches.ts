/**
 * Carries out what the group machines want: seals, attempts, acknowledgements, dead-letter writes, discards. Every
 * decision is committed to the journal first; the machine goes on with what the fold answered.
 */

import { lastResponseOf } from '../../domain/last-response.ts'
import type { DlqReason } from '../../domain/model.ts'
import { step } from '../../group/machine.ts'
import type { Batch, Effect, Input } from '../../group/model.ts'
import { asError } from '../../runtime/thrown.ts'
import type { LiveItem, OpenGroup } from '../held/live.ts'
import { MissingMessageError } from '../held/payload-cache.ts'
import { Wakes } from '../held/wakes.ts'
import type { OpenBatch } from '../journal/state.ts'
import type { AttemptResult, DeliveryEvent } from '../ports.ts'
import { Attempts } from './attempts.ts'
import { DeadLetterWriter } from './dead-letter-write.ts'
import { BodyMismatchError, DeliveryScheduler, type SealedBatch } from './delivery-scheduler.ts'
import type { BatchesOwner } from './owner.ts'
import { Sealer } from './sealer.ts'
import { Settlement } from './settlement.ts'

export class Batches {
  readonly attempts: Attempts
  readonly settlement: Settlement
  readonly #options: BatchesOwner
  readonly #sealer: Sealer
  readonly #wakes: Wakes<OpenGroup>
  readonly #sealed = new Map<Batch<LiveItem>, SealedBatch>()
  #deadLettering = 0
  #draining = false
  #stopped = false

  constructor(options: BatchesOwner) {
    this.#options = options
    const scheduler = new DeliveryScheduler(options)
    const deadLetterWriter = new DeadLetterWriter({ ...options, scheduler })
    this.#sealer = new Sealer(options)
    this.settlement = new Settlement({ ...options, deadLetterWriter, over: (sealed) => this.#over(sealed) })
    this.attempts = new Attempts(
      { ...options, scheduler },
      {
        ended: (sealed, result) => this.#attempted(sealed, result),
        withdrawn: (sealed, pauseMs) => this.#withdraw(sealed, pauseMs),
        unbuildable: (sealed, error) => this.#giveUp(sealed, error),
      },
    )
    this.#wakes = new Wakes(options.clock, (group, at) => this.step(group, { kind: 'tick', at }))
    options.groups.follow((group) => this.resume(group))
  }

  /** Batches on their way into the dead letter queue. */
  get deadLettering(): number {
    return this.#deadLettering
  }

  /** To be called about once a second: a clock that was ahead may have been set back. */
  look(): void {
    if (this.#wakes.mayBeLate()) this.#options.groups.tellAll()
  }

  /** From now on nothing is sealed and no attempt begins; what runs is finished. */
  drain(): void {
    this.#draining = true
    this.attempts.drain()
  }

  stop(): void {
    this.#stopped = true
    this.#draining = true
    this.attempts.stop()
    this.#wakes.stop()
  }

  /** One input of a group's machine, and what follows from it. */
  step(group: OpenGroup, input: Input<LiveItem>): void {
    if (this.#stopped) return
    try {
      const { state, effects } = step(group.machine, input)
      group.machine = state
      for (const effect of effects) this.#perform(group, effect)
    } catch (error) {
      this.#options.onFatal(asError(error))
    }
  }

  /** The group follows its buffer again. It is held while it may not act. */
  resume(group: OpenGroup): void {
    const { groups, clock, replay } = this.#options
    const held = replay.replaying || group.restoring > 0 || groups.paused
    const policy = held ? group.buffer.heldPolicy : group.buffer.policy
    this.step(group, { kind: 'policy', at: clock.now(), policy })
  }

  /** A batch of the last owner, with all its items at hand. */
  restore(group: OpenGroup, from: OpenBatch, items: LiveItem[]): void {
    const { version, attempt, seal, nextAt: nextAttemptAt } = from
    const { segment } = seal
    const { clock, remoteAttempts } = this.#options
    const at = clock.now()
    const before = new Set(group.machine.batches ?? [])
    const running = remoteAttempts.has({ groupId: group.id, version })
    this.step(group, { kind: 'restored', at, items, version, attempt, nextAttemptAt, segment, running })
    for (const batch of group.machine.batches ?? []) {
      if (before.has(batch)) continue
      const sealed = { group, batch, seal, body: null, sealedAt: at, last: null }
      this.#sealed.set(batch, sealed)
      if (running) this.#guard(this.attempts.awaitRemote(sealed))
    }
  }

  #perform(group: OpenGroup, effect: Effect<LiveItem>): void {
    switch (effect.kind) {
      case 'seal':
        if (!this.#draining) this.#guard(this.#seal(group, effect.batch))
        break
      case 'deliver':
        if (!this.#draining) this.#guard(this.attempts.begin(this.#sealedOf(group, effect.batch)))
        break
      case 'record-attempt':
        this.#recordAttempt(group, effect.batch)
        break
      case 'ack':
        this.settlement.acknowledge(this.#sealedOf(group, effect.batch))
        break
      case 'dead-letter':
        this.#guard(this.#deadLetter(this.#sealedOf(group, effect.batch), effect.reason))
        break
      case 'discard':
        if (effect.batch) this.settlement.discardBatch(this.#sealedOf(group, effect.batch))
        else this.settlement.discardItems(group, effect.items)
        break
      case 'wake':
        this.#wakes.arm(group, effect.at)
        break
      case 'retire':
        if (group.restoring === 0) this.#retire(group)
        break
    }
  }

  #retire(group: OpenGroup): void {
    this.#wakes.disarm(group)
    this.#options.groups.retire(group)
  }

  #guard(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (!this.#stopped) this.#options.onFatal(asError(error))
    })
  }

  async #seal(group: OpenGroup, batch: Batch<LiveItem>): Promise<void> {
    await this.#sealer.seal(group, batch, {
      wanted: () => !this.#draining,
      sealed: (sealed, version) => {
        this.#sealed.set(batch, sealed)
        this.step(group, { kind: 'sealed', at: this.#options.clock.now(), batch, version })
      },
    })
  }

  /** Its body cannot be had again. Nothing follows from that before a commit: a stale owner sees the purges of its successor. */
  async #giveUp(sealed: SealedBatch, error: unknown): Promise<void> {
    // The next owner finds that out for itself.
    if (this.#draining) return
    if (!(error instanceof BodyMismatchError || error instanceof MissingMessageError)) throw error
    await this.#options.journal.prove()
    if (!this.#stopped) this.settlement.giveUp(sealed, error)
  }

  /** Its turn came too late (the buffer was disabled), or the destination's queue is full. */
  #withdraw({ group, batch }: SealedBatch, pauseMs: number): void {
    const at = this.#options.clock.now()
    this.step(group, { kind: 'withdrawn', at, batch, notBefore: at + pauseMs })
  }

  #attempted(sealed: SealedBatch, result: AttemptResult): void {
    const { group, batch } = sealed
    // A batch may wait long for its next attempt, and many may: no more of the answer is kept than its dead letter shows.
    sealed.last = { ...result, responseBody: lastResponseOf(result.responseBody) }
    const outcome = result.delivered ? 'delivered' : result.retryable ? 'retry' : 'rejected'
    const exhausted = outcome === 'retry' && batch.attempt >= group.machine.policy.maxAttempts
    this.#tell(sealed, result, exhausted ? 'exhausted' : outcome)
    if (outcome === 'retry' && !exhausted) sealed.body = null
    this.step(group, { kind: 'result', at: this.#options.clock.now(), batch, result: outcome })
  }

  #tell({ group, batch }: SealedBatch, result: AttemptResult, outcome: DeliveryEvent['outcome']): void {
    const { telemetry, shard, randomness } = this.#options
    const { buffer } = group.buffer.record!
    telemetry.delivery({
      shard,
      groupId: group.id,
      bufferId: buffer.bufferId,
      version: batch.version,
      attempt: batch.attempt,
      outcome,
      statusCode: result.statusCode,
      errorClass: result.errorClass,
      error: result.error,
      durationMs: result.durationMs,
      items: batch.items.length,
      sampled: !result.delivered || randomness.fraction() < buffer.analytics.sampleDeliveryLogs,
    })
  }

  #recordAttempt(group: OpenGroup, batch: Batch<LiveItem>): void {
    const { version, attempt, nextAttemptAt } = batch
    const record = { type: 'attempt', groupId: group.id, version, attempt, nextAt: nextAttemptAt } as const
    this.#options.journal.write(record, () =>
      this.step(group, { kind: 'attempt-recorded', at: this.#options.clock.now(), batch }),
    )
  }

  #over({ group, batch }: SealedBatch): void {
    this.#sealed.delete(batch)
    this.step(group, { kind: 'settled', at: this.#options.clock.now(), batch })
  }

  async #deadLetter(sealed: SealedBatch, reason: DlqReason): Promise<void> {
    this.#deadLettering++
    try {
      await this.settlement.deadLetter(sealed, reason)
    } catch (error) {
      await this.#giveUp(sealed, error)
    } finally {
      this.#deadLettering--
    }
  }

  #sealedOf(group: OpenGroup, batch: Batch<LiveItem>): SealedBatch {
    const sealed = this.#sealed.get(batch)
    if (!sealed) throw new Error(`batch ${batch.version} of ${group.id} goes on before it is sealed`)
    return sealed
  }
}
