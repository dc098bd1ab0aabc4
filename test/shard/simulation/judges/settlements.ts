/**
 * How batches end: after what happened to them, each with exactly one fact that tells it
 * (docs/architecture/protocol.md, "Counters"); and what may be discarded.
 */
import type { BufferRecord } from '../../../../internal/domain/model.ts'
import { batchKey } from '../../../../internal/shard/journal/batch-name.ts'
import type {
  DiscardRecord,
  JournalRecord,
  SettledRecord,
} from '../../../../internal/shard/journal/records.ts'
import type { OpenBatch } from '../../../../internal/shard/journal/state.ts'
import type { DeadBatch, DeliveryFact } from '../../../../internal/shard/ports.ts'
import type { Items } from '../items.ts'
import type { Judge, Taken } from '../truth.ts'
import type { Attempt, AttemptJudge } from './attempts.ts'

export interface SettlementJudgeOptions {
  readonly items: Items
  readonly attempts: AttemptJudge
  readonly wrong: string[]
  /** The dead letter of a batch, by `batchKey`, deleted or not. */
  readonly rowOf: (batch: string) => DeadBatch | undefined
  /** Clocks of owners are wrong at times, so times say nothing. */
  readonly clocksStep: boolean
  /** As a user configured it last. */
  readonly recordOf: (bufferUid: string) => BufferRecord | undefined
}

export class SettlementJudge implements Judge {
  readonly #options: SettlementJudgeOptions
  /** Of all settled batches in the order of the journal: what the counters must be told. */
  facts: DeliveryFact[] = []
  readonly delivered = new Set<string>()
  readonly #sealedAt = new Map<string, number>()

  constructor(options: SettlementJudgeOptions) {
    this.#options = options
  }

  took(record: JournalRecord, taken: Taken): void {
    const { applied, batch, at } = taken
    if (!applied) return
    if (record.type === 'seal' && batch) this.#sealedAt.set(batchKey(batch), at)
    if (record.type === 'discard') this.#judgeDiscard(record, batch)
    if ((record.type !== 'done' && record.type !== 'dead') || !batch) return
    this.facts.push(record.fact)
    if (record.type === 'done') this.delivered.add(batchKey(batch))
    for (const what of this.#against(record, batch, taken))
      this.#options.wrong.push(`${record.type} of ${batchKey(batch)}: ${what}`)
  }

  forget(): void {
    this.facts = []
    this.delivered.clear()
    this.#sealedAt.clear()
  }

  /** All that is discarded belongs to a buffer that was deleted while it was disabled. */
  #judgeDiscard({ positions }: DiscardRecord, batch: OpenBatch | undefined): void {
    const { items, recordOf, wrong } = this.#options
    for (const position of batch?.seal.positions ?? positions) {
      const item = items.at(position)
      const record = item && recordOf(item.bufferUid)
      if (!record?.deleted || record.buffer.enabled) wrong.push(`${item?.itemId} was discarded`)
    }
  }

  #against({ type, fact }: SettledRecord, batch: OpenBatch, taken: Taken): string[] {
    const key = batchKey(batch)
    const { bufferUid, positions } = batch.seal
    const answered = this.#attemptsOf(batch).some(({ result }) => result?.delivered)
    const row = this.#options.rowOf(key)
    const rules: [broken: boolean, what: string][] = [
      [type === 'done' && !answered, 'no destination took it'],
      [type === 'dead' && !row, 'there is no dead letter'],
      [fact.outcome !== (type === 'done' ? 'delivered' : 'dead'), `its fact says ${fact.outcome}`],
      [fact.bufferUid !== bufferUid, `its fact is of buffer ${fact.bufferUid}`],
      [fact.items !== positions.length, `its fact has ${fact.items} items`],
      [fact.attempts !== batch.attempt, `its fact has ${fact.attempts} attempts instead of ${batch.attempt}`],
      [
        !this.#options.clocksStep && !this.#isTimely(fact, batch, taken),
        `its fact has impossible times: ${JSON.stringify(fact)}`,
      ],
      [row !== undefined && row.attempt + 1 !== batch.attempt, `its dead letter has attempt ${row?.attempt}`],
      [
        row !== undefined && row.itemCount !== positions.length,
        `its dead letter has ${row?.itemCount} items`,
      ],
    ]
    return rules.flatMap(([broken, what]) => (broken ? [what] : []))
  }

  /** Stored, sealed, attempted, settled: in this order. */
  #isTimely(fact: DeliveryFact, batch: OpenBatch, { at, epoch }: Taken): boolean {
    const storedAt = this.#options.items.at(batch.seal.positions[0]!)?.at ?? 0
    const sealedAt = this.#sealedAt.get(batchKey(batch)) ?? 0
    if (fact.at < sealedAt || fact.at > at) return false
    const { timeToFlushMs, durationMs } = fact
    const attempts = this.#attemptsOf(batch)
    // A dead letter that its owner only found: no times are known.
    const found = fact.outcome === 'dead' && !attempts.some(({ owner }) => owner.epoch === epoch)
    if (found && timeToFlushMs === 0 && durationMs === 0) return true
    const flushedAt = storedAt + timeToFlushMs
    const isLast = attempts.some(({ result }) => result && Math.round(result.durationMs) === durationMs)
    return isLast && sealedAt <= flushedAt && flushedAt <= fact.at && sealedAt + durationMs <= fact.at
  }

  /** Those with the number at which the batch ended. */
  #attemptsOf(batch: OpenBatch): readonly Attempt[] {
    return this.#options.attempts.of(batchKey(batch)).filter(({ number }) => number === batch.attempt)
  }
}
