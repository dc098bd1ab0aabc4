/**
 * Carries out what the group machines want: seals, attempts, acknowledgements, burials, discards. Every
 * decision is committed to the journal first; the machine goes on with what the fold answered.
 */

import type { DlqReason } from '../domain/model.ts'
import { step } from '../group/machine.ts'
import type { Batch, Effect, Input } from '../group/model.ts'
import type { Clock, Randomness } from '../runtime/clock.ts'
import { SERIALIZER, UnknownSerializerError } from './body.ts'
import { BodyMismatchError, type Courier, type SealedBatch } from './courier.ts'
import type { Endings } from './endings.ts'
import { MissingFrameError } from './frames.ts'
import type { Groups } from './groups.ts'
import type { AttemptName, AttemptsElsewhere, PassedResults } from './handover.ts'
import type { Journal } from './journal.ts'
import type { LiveItem, OpenGroup } from './live.ts'
import type { AttemptResult, ShardTelemetry } from './ports.ts'
import type { Sealer } from './sealer.ts'
import type { Wakes } from './wakes.ts'

/** Before an attempt that could not begin is tried again. */
const UNSENT_PAUSE_MS = 200
/** Before a batch that only a newer version can build is looked at again, if nobody took the shard meanwhile. */
const UNBUILDABLE_PAUSE_MS = 60_000
/** An attempt takes at most so long (specification, "Limits"), with some time for its result to arrive. */
export const ATTEMPT_MS = 11_000
/** A result that came before its buffer was known is looked at again after this. */
const CONFIGURED_EVERY_MS = 50

/** What the next owner is told of an attempt that did not begin. */
const UNSENT: AttemptResult = {
  ...{ delivered: false, retryable: true, statusCode: 0, errorClass: null, error: null },
  ...{ durationMs: 0, responseBody: null, unsent: true },
}

export interface BatchesOptions {
  readonly shard: number
  readonly clock: Clock
  readonly randomness: Randomness
  readonly journal: Journal
  readonly groups: Groups
  readonly wakes: Wakes<OpenGroup>
  readonly sealer: Sealer
  readonly courier: Courier
  readonly endings: Endings
  /** Attempts that the last owner released while they ran. */
  readonly elsewhere: AttemptsElsewhere
  readonly telemetry: ShardTelemetry
  /** Whether this owner may begin an attempt now: nothing says that it was replaced. */
  readonly mayAct: () => boolean
  /** The shard cannot go on: it was lost, or an invariant is broken. */
  readonly onFatal: (error: Error) => void
}

export class Batches {
  readonly #options: BatchesOptions
  readonly #sealed = new Map<Batch<LiveItem>, SealedBatch>()
  /** Their attempt runs, or waits for its turn; here or, as was told, at the last owner. */
  readonly #attempted = new Map<Batch<LiveItem>, Promise<void>>()
  /** Of them, those that run at the last owner. */
  readonly #elsewhere = new Set<Batch<LiveItem>>()
  #burying = 0
  #draining = false
  #stopped = false
  #passed: PassedResults | undefined

  constructor(options: BatchesOptions) {
    this.#options = options
  }

  /** Attempts that run or wait for their turn, here or, as was told, at the last owner. */
  get attempting(): number {
    return this.#attempted.size
  }

  /** Batches on their way into the dead letter queue. */
  get burying(): number {
    return this.#burying
  }

  /**
   * Batches whose attempt runs, with the latest end of it (Unix ms). One that was due when nothing was begun any more is
   * none of them: the next owner would wait for its result.
   */
  inFlight(
    now: number,
    where: 'here' | 'anywhere',
  ): { groupId: string; version: number; deadline: number }[] {
    return [...this.#sealed.values()]
      .filter(({ batch }) => this.#attempted.has(batch))
      .filter(({ batch }) => where === 'anywhere' || !this.#elsewhere.has(batch))
      .map(({ group, batch }) => ({ groupId: group.id, version: batch.version, deadline: now + ATTEMPT_MS }))
  }

  /** From now on nothing is sealed and no attempt begins; what runs is finished. */
  drain(): void {
    this.#draining = true
  }

  /** After `drain`: results of what still runs are no longer this owner's to commit. */
  passOn(passed: PassedResults): void {
    this.#passed = passed
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
      sealed: Omit<SealedBatch, 'group' | 'batch' | 'body' | 'last' | 'sealedAt'>
      segment: number
    },
  ): void {
    const { version, attempt, items, segment } = from
    const { clock, elsewhere } = this.#options
    const at = clock.now()
    const before = new Set(group.machine.batches ?? [])
    const running = elsewhere.has({ groupId: group.id, version })
    const nextAttemptAt = from.nextAt
    this.step(group, { kind: 'restored', at, items, version, attempt, nextAttemptAt, segment, running })
    for (const batch of group.machine.batches ?? []) {
      if (before.has(batch)) continue
      const sealed = { group, batch, body: null, sealedAt: at, last: null, ...from.sealed }
      this.#sealed.set(batch, sealed)
      if (running) this.#guard(this.#attempting(batch, this.#await(sealed)))
    }
  }

  /** The attempt of the last owner; should its result not come in time, it begins here. */
  async #await(sealed: SealedBatch): Promise<void> {
    const { group, batch } = sealed
    this.#elsewhere.add(batch)
    const result = await this.#options.elsewhere.result({ groupId: group.id, version: batch.version })
    this.#elsewhere.delete(batch)
    await this.#untilConfigured(group)
    // Whoever cannot build it cannot bury it either: a failure is left to be found again by who can.
    const usable = result?.delivered || sealed.serializer <= SERIALIZER
    this.#ended(sealed, usable ? result : null, 0)
  }

  /** What a result means depends on the buffer: how often it may fail, and whether it stands in the log. */
  async #untilConfigured(group: OpenGroup): Promise<void> {
    while (group.provisional && !this.#passed && !this.#stopped)
      await new Promise<void>((resume) => this.#options.clock.after(CONFIGURED_EVERY_MS, resume))
  }

  #perform(group: OpenGroup, effect: Effect<LiveItem>): void {
    switch (effect.kind) {
      case 'seal':
        if (!this.#draining) this.#guard(this.#seal(group, effect.batch))
        break
      case 'deliver':
        if (!this.#draining) this.#guard(this.#attempting(effect.batch, this.#deliver(group, effect.batch)))
        break
      case 'record-attempt':
        this.#recordAttempt(group, effect.batch)
        break
      case 'ack':
        this.#options.endings.acknowledge(this.#sealedOf(group, effect.batch), () =>
          this.#over(group, effect.batch),
        )
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
    const wanted = () => !this.#draining
    await this.#options.sealer.seal(group, batch, wanted, (sealed, version) => {
      this.#sealed.set(batch, sealed)
      this.step(group, { kind: 'sealed', at: this.#options.clock.now(), batch, version })
    })
  }

  async #attempting(batch: Batch<LiveItem>, attempt: Promise<void>): Promise<void> {
    this.#attempted.set(batch, attempt)
    await attempt.finally(() => {
      // Its end may have begun the next one.
      if (this.#attempted.get(batch) === attempt) this.#attempted.delete(batch)
    })
  }

  async #deliver(group: OpenGroup, batch: Batch<LiveItem>): Promise<void> {
    const sealed = this.#sealedOf(group, batch)
    try {
      // Groups are told in slices that their node may have been replaced; nothing is sent meanwhile.
      const mayBegin = () =>
        !this.#draining && this.#options.mayAct() && group.machine.policy.state === 'active'
      this.#ended(sealed, await this.#options.courier.attempt(sealed, mayBegin), UNSENT_PAUSE_MS)
    } catch (error) {
      if (error instanceof UnknownSerializerError) return this.#withdraw(group, batch, UNBUILDABLE_PAUSE_MS)
      await this.#giveUp(sealed, error)
      // Whoever is next was told that an attempt of it runs.
      this.#passed?.tell(attemptNameOf(sealed), UNSENT)
    }
  }

  /** Its body cannot be had again. Nothing follows from that before a commit: a stale owner sees the purges of its successor. */
  async #giveUp(sealed: SealedBatch, error: unknown): Promise<void> {
    if (!(error instanceof BodyMismatchError || error instanceof MissingFrameError)) throw error
    // The next owner finds that out for itself.
    if (this.#draining) return
    await this.#options.journal.prove()
    if (!this.#stopped) this.#options.endings.giveUp(sealed, error, this.#options.onFatal)
  }

  #ended(sealed: SealedBatch, result: AttemptResult | null, pauseMs: number): void {
    const { group, batch } = sealed
    if (this.#passed) this.#passed.tell(attemptNameOf(sealed), result ?? UNSENT)
    else if (this.#stopped) return
    else if (result && !result.unsent) this.#onResult(sealed, result)
    else this.#withdraw(group, batch, pauseMs)
  }

  /** Its turn came too late (the buffer was disabled), or the destination's queue is full. */
  #withdraw(group: OpenGroup, batch: Batch<LiveItem>, pauseMs: number): void {
    const at = this.#options.clock.now()
    this.step(group, { kind: 'withdrawn', at, batch, notBefore: at + pauseMs })
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

  #discard(group: OpenGroup, items: readonly LiveItem[], batch: Batch<LiveItem> | undefined): void {
    const { endings } = this.#options
    if (batch) endings.discardBatch(this.#sealedOf(group, batch), () => this.#over(group, batch))
    else endings.discardItems(group, items)
  }

  #over(group: OpenGroup, batch: Batch<LiveItem>): void {
    this.#sealed.delete(batch)
    this.step(group, { kind: 'settled', at: this.#options.clock.now(), batch })
  }

  async #bury(group: OpenGroup, batch: Batch<LiveItem>, reason: DlqReason): Promise<void> {
    const sealed = this.#sealedOf(group, batch)
    this.#burying++
    try {
      await this.#options.endings.bury(
        sealed,
        reason,
        () => this.#stopped,
        () => this.#over(group, batch),
      )
    } catch (error) {
      await this.#giveUp(sealed, error)
    } finally {
      this.#burying--
    }
  }

  #sealedOf(group: OpenGroup, batch: Batch<LiveItem>): SealedBatch {
    const sealed = this.#sealed.get(batch)
    if (!sealed) throw new Error(`batch ${batch.version} of ${group.id} goes on before it is sealed`)
    return sealed
  }
}

function attemptNameOf({ group, batch }: SealedBatch): AttemptName {
  return { groupId: group.id, version: batch.version, attempt: batch.attempt }
}
