/**
 * How batches end: done, dead, discarded, or given up. An item is over only once the record that says so is
 * committed; until then it stays live and holds the horizon back.
 */

import type { DlqReason } from '../../domain/model.ts'
import type { LiveItem, OpenGroup } from '../held/live.ts'
import type { BatchName } from '../journal/batch-name.ts'
import type { Committed } from '../journal/journal.ts'
import type { SettledRecord } from '../journal/records.ts'
import type { DeadWrite, DeliveryFact } from '../ports.ts'
import type { DeadLetterWriter } from './dead-letter-write.ts'
import type { SealedBatch } from './delivery-scheduler.ts'
import type { BatchesOwner } from './owner.ts'

/** Positions in one discard record. */
const DISCARD_SLICE = 5_000

export interface SettlementOptions extends BatchesOwner {
  readonly deadLetterWriter: DeadLetterWriter
  /** The items of the batch are over: its group goes on. */
  readonly over: (sealed: SealedBatch) => void
}

export class Settlement {
  readonly #options: SettlementOptions

  constructor(options: SettlementOptions) {
    this.#options = options
  }

  /** The destination acknowledged it. */
  acknowledge(sealed: SealedBatch): void {
    this.#settle(sealed, 'done')
  }

  /** Rejects as `DeadLetterWriter.write`; nothing is committed when the owner has ended by then. */
  async deadLetter(sealed: SealedBatch, reason: DlqReason): Promise<void> {
    const { deadLetterWriter, ended } = this.#options
    const written = await deadLetterWriter.write(sealed, reason)
    if (written === null || ended()) return
    this.#tellDead(sealed, reason, written)
    this.#settle(sealed, 'dead')
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
  discardBatch(sealed: SealedBatch): void {
    const { group, batch } = sealed
    const name = { groupId: group.id, version: batch.version }
    this.#options.journal.write({ type: 'discard', batch: name, positions: [] }, () => {
      this.#forget(batch.items)
      this.#options.over(sealed)
    })
    this.#tellDiscarded(group, batch.items.length)
  }

  /** Items of such a buffer that were not sealed. */
  discardItems(group: OpenGroup, items: readonly LiveItem[]): void {
    this.#discardFrom(items, 0)
    this.#tellDiscarded(group, items.length)
  }

  /** A slice behind the other: a million of them would take one turn. */
  #discardFrom(items: readonly LiveItem[], from: number): void {
    const positions = items.slice(from, from + DISCARD_SLICE)
    if (positions.length === 0) return
    this.#options.journal.write({ type: 'discard', batch: null, positions }, () => {
      this.#forget(positions)
      this.#discardFrom(items, from + DISCARD_SLICE)
    })
  }

  /** The sealed body cannot be had again: never guess. */
  giveUp({ group, batch }: SealedBatch, error: Error): void {
    const { telemetry, fence } = this.#options
    const name = { groupId: group.id, version: batch.version }
    const detail = { ...name, items: batch.items.length }
    const what = 'a sealed batch cannot be rebuilt'
    telemetry.problem({ shard: fence.shard, what, error: error.message, detail })
    this.unseal(name, error.message)
  }

  /**
   * Gives a seal up under our own fence: a stale owner that misses purged items is refused here. What is left of
   * its items is sealed anew, under another version, by whoever replays: this owner ends.
   */
  unseal({ groupId, version }: BatchName, why: string): void {
    const { journal, onFatal } = this.#options
    const given = new Error(`batch ${version} of ${groupId} was given up: ${why}`)
    journal.write({ type: 'unseal', groupId, version }, () => onFatal(given))
  }

  /** Commits how a batch of these items ended. Then they are over, and `then` is called. */
  end(record: SettledRecord, items: readonly LiveItem[], then: () => void): void {
    const { journal, projector } = this.#options
    const committed: Committed = (seq, applied, data) => {
      if (applied) projector.add(seq, data, record.fact)
      if (record.type === 'dead') this.#forgetTombstone(record)
      this.#forget(items)
      then()
    }
    // Of a delivered batch: its group goes on without it, so it rides with whatever is committed next.
    if (record.type === 'done') journal.writeSoon(record, committed)
    else journal.write(record, committed)
  }

  #settle(sealed: SealedBatch, type: 'done' | 'dead'): void {
    const { group, batch } = sealed
    const fact = this.#factOf(sealed, type === 'done' ? 'delivered' : 'dead')
    const record = { type, groupId: group.id, version: batch.version, fact }
    this.end(record, batch.items, () => this.#options.over(sealed))
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

  /** Its row may have been deleted meanwhile: only until its `dead` record is there must nobody write it again. */
  #forgetTombstone({ groupId, version }: BatchName): void {
    const { deadLetters, fence, telemetry } = this.#options
    deadLetters.forgetTombstones(fence, [{ groupId, version }]).catch((error: unknown) => {
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
