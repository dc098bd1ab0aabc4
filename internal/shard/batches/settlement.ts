/**
 * How batches end: done, dead, discarded, or given up. An item is over only once the record that says so is
 * committed; until then it stays live and holds the horizon back.
 */

import type { DlqReason } from '../../domain/model.ts'
import type { LiveItem, OpenGroup } from '../held/live.ts'
import type { Committed } from '../journal/journal.ts'
import type { JournalRecord } from '../journal/records.ts'
import type { DeadWrite, DeliveryFact } from '../ports.ts'
import type { DeadLetterWriter } from './dead-letter-write.ts'
import type { SealedBatch } from './delivery-scheduler.ts'
import type { BatchesOwner } from './owner.ts'

/** Positions in one discard record. */
const DISCARD_SLICE = 5_000

type Taken = 'fence' | 'clock' | 'journal' | 'live' | 'duplicates' | 'projector' | 'deadLetters' | 'telemetry'

export interface SettlementOptions extends Pick<BatchesOwner, Taken> {
  readonly deadLetterWriter: DeadLetterWriter
}

/** What the end of a batch means to whoever runs its group. */
export interface BatchEvents {
  /** This owner has ended: nothing is committed any more. */
  stopped(): boolean
  /** The items of the batch are over. */
  over(sealed: SealedBatch): void
}

export class Settlement {
  readonly #options: SettlementOptions

  constructor(options: SettlementOptions) {
    this.#options = options
  }

  /** The destination acknowledged it. */
  acknowledge(sealed: SealedBatch, events: BatchEvents): void {
    this.#settle(sealed, 'done', events)
  }

  /** Rejects as `DeadLetterWriter.write`; nothing is committed when `stopped` by then. */
  async deadLetter(sealed: SealedBatch, reason: DlqReason, events: BatchEvents): Promise<void> {
    const written = await this.#options.deadLetterWriter.write(sealed, reason, () => events.stopped())
    if (written === null || events.stopped()) return
    this.#tellDead(sealed, reason, written)
    this.#settle(sealed, 'dead', events)
  }

  #tellDead({ group, batch }: SealedBatch, reason: DlqReason, { dlqId, paused }: DeadWrite): void {
    const { telemetry, fence } = this.#options
    const { bufferId } = group.buffer.record!.buffer
    const items = batch.items.length
    const { version } = batch
    telemetry.dead({ shard: fence.shard, groupId: group.id, version, reason, dlqId, paused, bufferId, items })
    if (!paused) return
    telemetry.paused({ bufferId, bufferUid: group.buffer.uid, reason: 'consecutive_dead_letters', dlqId })
  }

  /** A sealed batch of a buffer that was deleted while disabled. */
  discardBatch(sealed: SealedBatch, events: BatchEvents): void {
    const { group, batch } = sealed
    const name = { groupId: group.id, version: batch.version }
    this.#options.journal.write({ type: 'discard', batch: name, positions: [] }, () => {
      this.#forget(batch.items)
      events.over(sealed)
    })
    this.#tellDiscarded(group, batch.items.length)
  }

  /** Items of such a buffer that were not sealed. */
  discardItems(group: OpenGroup, items: readonly LiveItem[]): void {
    for (let from = 0; from < items.length; from += DISCARD_SLICE) {
      const positions = items.slice(from, from + DISCARD_SLICE)
      this.#options.journal.write({ type: 'discard', batch: null, positions }, () => this.#forget(positions))
    }
    this.#tellDiscarded(group, items.length)
  }

  /**
   * The sealed body cannot be had again: never guess. The seal is given up under our own fence, and what is
   * left of its items is sealed anew, under another version, by whoever replays: `then` ends this owner.
   */
  giveUp({ group, batch }: SealedBatch, error: Error, then: (error: Error) => void): void {
    const { journal, telemetry, fence } = this.#options
    const detail = { groupId: group.id, version: batch.version, items: batch.items.length }
    const what = 'a sealed batch cannot be rebuilt'
    telemetry.problem({ shard: fence.shard, what, error: error.message, detail })
    journal.write({ type: 'unseal', groupId: group.id, version: batch.version }, () => {
      then(new Error(`batch ${batch.version} of ${group.id} was given up: ${error.message}`))
    })
  }

  #settle(sealed: SealedBatch, type: 'done' | 'dead', events: BatchEvents): void {
    const { group, batch } = sealed
    const fact = this.#factOf(sealed, type === 'done' ? 'delivered' : 'dead')
    const record: JournalRecord = { type, groupId: group.id, version: batch.version, fact }
    const committed: Committed = (seq, applied, data) => {
      if (applied) this.#options.projector.add(seq, data, fact)
      if (type === 'dead') this.#forgetTombstone(group, batch.version)
      this.#forget(batch.items)
      events.over(sealed)
    }
    // Of a delivered batch: its group goes on without it, so it rides with whatever is committed next.
    if (type === 'done') this.#options.journal.writeSoon(record, committed)
    else this.#options.journal.write(record, committed)
  }

  #factOf({ group, batch, sealedAt, last }: SealedBatch, outcome: DeliveryFact['outcome']): DeliveryFact {
    return {
      outcome,
      bufferUid: group.buffer.uid,
      at: this.#options.clock.now(),
      items: batch.items.length,
      attempts: Math.max(1, batch.attempt),
      timeToFlushMs: Math.max(0, Math.round(sealedAt - batch.items[0]!.at)),
      durationMs: Math.round(last?.durationMs ?? 0),
    }
  }

  #forgetTombstone({ id }: OpenGroup, version: number): void {
    const { deadLetters, fence, telemetry } = this.#options
    deadLetters.forgetTombstones(fence, [{ groupId: id, version }]).catch((error: unknown) => {
      telemetry.problem({ shard: fence.shard, what: 'a tombstone stays', error: String(error) })
    })
  }

  #forget(items: readonly LiveItem[]): void {
    for (const item of items) {
      this.#options.duplicates.remove(item)
      this.#options.live.remove(item)
    }
  }

  #tellDiscarded(group: OpenGroup, items: number): void {
    const { telemetry, fence } = this.#options
    telemetry.discarded({ shard: fence.shard, bufferId: group.buffer.record!.buffer.bufferId, items })
  }
}
