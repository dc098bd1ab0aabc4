/**
 * Carries out what the group machines want: seals, attempts, acknowledgements, burials, discards. Every
 * decision is committed to the journal first; the machine goes on with what the fold answered.
 */

import type { DlqReason } from '../domain/model.ts'
import { step } from '../group/machine.ts'
import type { Batch, Effect, Input } from '../group/model.ts'
import type { Clock, Randomness } from '../runtime/clock.ts'
import { type BatchBody, buildBody, SERIALIZER } from './body.ts'
import type { Burial } from './burial.ts'
import { BodyMismatchError, type Courier, type SealedBatch } from './courier.ts'
import { type Frames, MissingFrameError } from './frames.ts'
import type { Groups } from './groups.ts'
import type { Journal } from './journal.ts'
import type { LiveItem, LiveItems, OpenGroup } from './live.ts'
import type { AttemptResult, DeadLetters, DeliveryFact, Fence, ShardTelemetry } from './ports.ts'
import type { Projector } from './projector.ts'
import type { Twins } from './twins.ts'
import type { Wakes } from './wakes.ts'

/** Positions in one discard record. */
const DISCARD_SLICE = 5_000
/** Before an attempt that could not begin is tried again. */
const UNSENT_PAUSE_MS = 200
/** An attempt takes at most so long (specification, "Limits"). */
const ATTEMPT_MS = 10_000

export interface BatchesOptions {
  readonly shard: number
  readonly fence: Fence
  readonly clock: Clock
  readonly randomness: Randomness
  readonly journal: Journal
  readonly frames: Frames
  readonly live: LiveItems
  readonly twins: Twins
  readonly groups: Groups
  readonly wakes: Wakes<OpenGroup>
  readonly courier: Courier
  readonly burial: Burial
  readonly projector: Projector
  readonly deadLetters: Pick<DeadLetters, 'forgetTombstones'>
  readonly telemetry: ShardTelemetry
  /** The shard cannot go on: it was lost, or an invariant is broken. */
  readonly onFatal: (error: Error) => void
}

export class Batches {
  readonly #options: BatchesOptions
  readonly #sealed = new Map<Batch<LiveItem>, SealedBatch>()
  #burying = 0
  #draining = false
  #stopped = false

  constructor(options: BatchesOptions) {
    this.#options = options
  }

  /** Batches on their way into the dead letter queue. */
  get burying(): number {
    return this.#burying
  }

  /** Batches whose attempt runs, with the latest end of it (Unix ms). */
  inFlight(now: number): { groupId: string; version: number; deadline: number }[] {
    return [...this.#sealed.values()]
      .filter(({ batch }) => batch.phase === 'delivering')
      .map(({ group, batch }) => ({ groupId: group.id, version: batch.version, deadline: now + ATTEMPT_MS }))
  }

  /** From now on nothing is sealed and no attempt begins; what runs is finished. */
  drain(): void {
    this.#draining = true
  }

  stop(): void {
    this.#stopped = true
    this.#draining = true
  }

  /** One input of a group's machine, and what follows from it. */
  step(group: OpenGroup, input: Input<LiveItem>): void {
    if (this.#stopped) return
    try {
      const { state, effects } = step(group.machine, input)
      group.machine = state
      for (const effect of effects) this.#perform(group, effect)
    } catch (error) {
      this.#options.onFatal(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** A batch of the last owner, with all its items at hand. */
  restore(
    group: OpenGroup,
    from: {
      version: number
      attempt: number
      nextAt: number
      items: LiveItem[]
      sealed: Omit<SealedBatch, 'group' | 'batch' | 'body' | 'last'>
      segment: number
    },
  ): void {
    const { version, attempt, items, segment } = from
    const at = this.#options.clock.now()
    const before = new Set(group.machine.batches ?? [])
    this.step(group, { kind: 'restored', at, items, version, attempt, nextAttemptAt: from.nextAt, segment })
    for (const batch of group.machine.batches ?? []) {
      if (!before.has(batch))
        this.#sealed.set(batch, { group, batch, body: null, last: null, ...from.sealed })
    }
  }

  #perform(group: OpenGroup, effect: Effect<LiveItem>): void {
    switch (effect.kind) {
      case 'seal':
        if (!this.#draining) this.#guard(this.#seal(group, effect.batch))
        break
      case 'deliver':
        if (!this.#draining) this.#guard(this.#deliver(group, effect.batch))
        break
      case 'record-attempt':
        this.#recordAttempt(group, effect.batch)
        break
      case 'ack':
        this.#settle(group, effect.batch, 'done')
        break
      case 'dead-letter':
        this.#guard(this.#bury(group, effect.batch, effect.reason))
        break
      case 'discard':
        this.#discard(group, effect.items, effect.batch)
        break
      case 'wake':
        this.#options.wakes.arm(group, effect.at)
        break
      case 'retire':
        if (group.restoring === 0) this.#options.groups.retire(group)
        break
    }
  }

  #guard(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (!this.#stopped) this.#options.onFatal(error instanceof Error ? error : new Error(String(error)))
    })
  }

  async #seal(group: OpenGroup, batch: Batch<LiveItem>): Promise<void> {
    const owner = group.book.record!.buffer
    const build = (data: Parameters<typeof buildBody>[4]) =>
      buildBody(owner, group.id, batch.segment, batch.items, data)
    const ready = this.#options.frames.with(batch.items, build)
    const built = ready instanceof Promise ? await this.#proven(ready) : ready
    if (this.#stopped || this.#draining) return
    this.#options.journal.write(
      {
        type: 'seal',
        groupId: group.id,
        bufferUid: group.book.uid,
        segment: batch.segment,
        reason: batch.reason,
        firstItemAt: built.firstItemAt,
        lastActivityAt: built.lastActivityAt,
        positions: batch.items,
        itemsHash: built.itemsHash,
        bodySha256: built.sha256,
        serializer: SERIALIZER,
      },
      (version, applied) => this.#onSealed(group, batch, built, version, applied),
    )
  }

  /** Nothing follows from a missing message before a successful commit: a stale owner sees the purges of its successor. */
  async #proven<T>(reading: Promise<T>): Promise<T> {
    try {
      return await reading
    } catch (error) {
      if (error instanceof MissingFrameError) await this.#options.journal.prove()
      throw error
    }
  }

  #onSealed(
    group: OpenGroup,
    batch: Batch<LiveItem>,
    built: BatchBody,
    version: number,
    applied: boolean,
  ): void {
    const at = this.#options.clock.now()
    if (!applied) throw new Error(`the seal ${version} of ${group.id} is void`)
    const { body, sha256, itemsHash, firstItemAt, lastActivityAt } = built
    this.#sealed.set(batch, {
      group,
      batch,
      sha256,
      itemsHash,
      firstItemAt,
      lastActivityAt,
      body,
      last: null,
    })
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
    this.step(group, { kind: 'sealed', at, batch, version })
  }

  async #deliver(group: OpenGroup, batch: Batch<LiveItem>): Promise<void> {
    const sealed = this.#sealed.get(batch)
    if (!sealed) throw new Error(`batch ${batch.version} of ${group.id} is delivered before it is sealed`)
    try {
      const mayBegin = () => !this.#draining && group.machine.policy.state === 'active'
      const result = await this.#options.courier.attempt(sealed, mayBegin)
      if (this.#stopped) return
      if (result && !result.unsent) this.#onResult(sealed, result)
      else this.#withdraw(group, batch)
    } catch (error) {
      if (!(error instanceof BodyMismatchError || error instanceof MissingFrameError)) throw error
      await this.#options.journal.prove()
      if (!this.#stopped) this.#giveUp(sealed, error)
    }
  }

  /** Its turn came too late (the buffer was disabled), or the destination's queue is full. */
  #withdraw(group: OpenGroup, batch: Batch<LiveItem>): void {
    const at = this.#options.clock.now()
    this.step(group, { kind: 'withdrawn', at, batch, notBefore: at + UNSENT_PAUSE_MS })
  }

  #onResult(sealed: SealedBatch, result: AttemptResult): void {
    const { group, batch } = sealed
    const { clock, telemetry, shard, randomness } = this.#options
    sealed.last = result
    const outcome = result.delivered ? 'delivered' : result.retryable ? 'retry' : 'rejected'
    const exhausted = outcome === 'retry' && batch.attempt >= group.machine.policy.maxAttempts
    const { buffer } = group.book.record!
    telemetry.delivery({
      shard,
      groupId: group.id,
      bufferId: buffer.bufferId,
      version: batch.version,
      attempt: batch.attempt,
      outcome: exhausted ? 'exhausted' : outcome,
      statusCode: result.statusCode,
      errorClass: result.errorClass,
      error: result.error,
      durationMs: result.durationMs,
      items: batch.items.length,
      sampled: !result.delivered || randomness.fraction() < buffer.analytics.sampleDeliveryLogs,
    })
    if (outcome === 'retry' && !exhausted) sealed.body = null
    this.step(group, { kind: 'result', at: clock.now(), batch, result: outcome })
  }

  #recordAttempt(group: OpenGroup, batch: Batch<LiveItem>): void {
    const { version, attempt, nextAttemptAt } = batch
    const record = { type: 'attempt', groupId: group.id, version, attempt, nextAt: nextAttemptAt } as const
    this.#options.journal.write(record, () =>
      this.step(group, { kind: 'attempt-recorded', at: this.#options.clock.now(), batch }),
    )
  }

  #settle(group: OpenGroup, batch: Batch<LiveItem>, type: 'done' | 'dead'): void {
    const fact = this.#factOf(batch, type === 'done' ? 'delivered' : 'dead', group)
    this.#options.journal.write({ type, groupId: group.id, version: batch.version, fact }, (seq, applied) => {
      if (applied) this.#options.projector.add(seq, fact)
      if (type === 'dead') this.#forgetTombstone(group, batch.version)
      this.#over(group, batch)
    })
  }

  #forgetTombstone(group: OpenGroup, version: number): void {
    const { deadLetters, fence, telemetry, shard } = this.#options
    deadLetters.forgetTombstones(fence, [{ groupId: group.id, version }]).catch((error: unknown) => {
      telemetry.problem({ shard, what: 'a tombstone stays', error: String(error) })
    })
  }

  #factOf(batch: Batch<LiveItem>, outcome: DeliveryFact['outcome'], group: OpenGroup): DeliveryFact {
    const last = this.#sealed.get(batch)?.last
    const at = this.#options.clock.now()
    const durationMs = Math.round(last?.durationMs ?? 0)
    return {
      outcome,
      bufferUid: group.book.uid,
      at,
      items: batch.items.length,
      attempts: Math.max(1, batch.attempt),
      timeToFlushMs: Math.max(0, Math.round(at - durationMs - batch.items[0]!.at)),
      durationMs,
    }
  }

  #over(group: OpenGroup, batch: Batch<LiveItem>): void {
    this.#sealed.delete(batch)
    for (const item of batch.items) this.#forget(item)
    this.step(group, { kind: 'settled', at: this.#options.clock.now(), batch })
  }

  #forget(item: LiveItem): void {
    this.#options.twins.remove(item)
    this.#options.live.remove(item)
  }

  async #bury(group: OpenGroup, batch: Batch<LiveItem>, reason: DlqReason): Promise<void> {
    const sealed = this.#sealed.get(batch)!
    const { burial, telemetry, shard } = this.#options
    this.#burying++
    const { paused } = await burial.bury(sealed, reason, () => this.#stopped).finally(() => this.#burying--)
    if (this.#stopped) return
    const { bufferId } = group.book.record!.buffer
    const { version, items } = batch
    telemetry.dead({ shard, groupId: group.id, bufferId, version, reason, items: items.length, paused })
    this.#settle(group, batch, 'dead')
  }

  #discard(group: OpenGroup, items: readonly LiveItem[], batch: Batch<LiveItem> | undefined): void {
    const { journal, telemetry, shard } = this.#options
    const bufferId = group.book.record!.buffer.bufferId
    if (batch) {
      const record = {
        type: 'discard',
        batch: { groupId: group.id, version: batch.version },
        positions: [],
      } as const
      journal.write(record, () => this.#over(group, batch))
    } else {
      for (let from = 0; from < items.length; from += DISCARD_SLICE) {
        const slice = items.slice(from, from + DISCARD_SLICE)
        journal.write({ type: 'discard', batch: null, positions: slice }, () => {
          for (const item of slice) this.#forget(item)
        })
      }
    }
    telemetry.discarded({ shard, bufferId, items: items.length })
  }

  /**
   * The sealed body cannot be had again: never guess. The seal is given up under our own fence, and what is
   * left of its items is sealed anew, under another version.
   */
  #giveUp(sealed: SealedBatch, error: Error): void {
    const { group, batch } = sealed
    const { journal, telemetry, shard } = this.#options
    const detail = { groupId: group.id, version: batch.version, items: batch.items.length }
    telemetry.problem({ shard, what: 'a sealed batch cannot be rebuilt', error: error.message, detail })
    journal.write({ type: 'unseal', groupId: group.id, version: batch.version }, () => {
      // Only a fresh replay tells which of the items are still there.
      this.#options.onFatal(new Error(`batch ${batch.version} of ${group.id} was given up: ${error.message}`))
    })
  }
}
