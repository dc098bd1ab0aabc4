/** Groups are sealed in log order, and no faster than their buffer allows. */
import type { JournalRecord, Position, SealRecord } from '../../../../internal/shard/journal/records.ts'
import type { Owner } from '../owner.ts'
import type { Judge, Taken, Truth } from '../truth.ts'

export class SealJudge implements Judge {
  readonly #truth: Truth
  readonly #wrong: string[]
  readonly #ownerOf: (epoch: number) => Owner | undefined
  /** The last sealed position of each group. */
  readonly #last = new Map<string, Position>()

  constructor(truth: Truth, wrong: string[], ownerOf: (epoch: number) => Owner | undefined) {
    this.#truth = truth
    this.#wrong = wrong
    this.#ownerOf = ownerOf
  }

  took(record: JournalRecord, { applied, epoch }: Taken): void {
    // What was given up is sealed again.
    if (record.type === 'unseal') this.#last.delete(record.groupId)
    if (record.type !== 'seal' || !applied) return
    this.#judgeOrder(record)
    if (this.#ownerOf(epoch)?.buffers.isSerial(record.bufferUid)) this.#judgeTurn(record)
  }

  forget(): void {
    this.#last.clear()
  }

  #judgeOrder({ groupId, positions }: SealRecord): void {
    for (const position of positions) {
      const last = this.#last.get(groupId)
      if (last && isBelow(position, last))
        this.#wrong.push(
          `order: ${position.seq}/${position.index} of ${groupId} is sealed behind a later one`,
        )
      this.#last.set(groupId, position)
    }
  }

  /** With a concurrency of 1 the older batch of the group is over by then. */
  #judgeTurn({ groupId }: SealRecord): void {
    const open = [...this.#truth.state.batches.values()].filter((batch) => batch.groupId === groupId)
    if (open.length > 1) this.#wrong.push(`order: ${groupId} is sealed before its older batch is over`)
  }
}

function isBelow(one: Position, other: Position): boolean {
  return one.seq < other.seq || (one.seq === other.seq && one.index < other.index)
}
