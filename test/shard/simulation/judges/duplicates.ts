/**
 * An item with an explicit id is dropped exactly when one with the same id was live in its group as it came
 * (docs/architecture/protocol.md, "Duplicates and verdicts").
 */
import type { DropRecord, JournalRecord, Position } from '../../../../internal/shard/journal/records.ts'
import { type Items, liveOriginalOf } from '../items.ts'
import type { Judge, Taken } from '../truth.ts'

export class DuplicateJudge implements Judge {
  readonly #items: Items
  readonly #wrong: string[]
  readonly #dropsMayWait: boolean
  /** The last commit that holds records, and the one before it. */
  #last = 0
  #before = 0

  /** `dropsMayWait`: for room in the journal, while what was written before them ends their originals. */
  constructor(items: Items, wrong: string[], dropsMayWait: boolean) {
    this.#items = items
    this.#wrong = wrong
    this.#dropsMayWait = dropsMayWait
  }

  took(record: JournalRecord, { seq, applied }: Taken): void {
    if (seq !== this.#last) [this.#before, this.#last] = [this.#last, seq]
    if (!applied) return
    if (record.type === 'drop') this.#dropped(record)
    else if (record.type === 'seal') for (const position of record.positions) this.#taken(position)
    else if (record.type === 'keep') for (const { position } of record.items) this.#taken(position)
  }

  /** All else that it goes by stands with the items. */
  forget(): void {
    this.#before = 0
    this.#last = 0
  }

  /**
   * The owner learns that an original is over with the answer to its commit: what it drops may be in the next one that holds
   * records, or in any later one when it waits for room. Then its original was live as it came, or its end was the last commit.
   */
  #dropped({ originalItemId, itemId, position }: DropRecord): void {
    const item = this.#items.at(position)
    if (originalItemId === itemId) {
      if (!item?.again) this.#wrong.push(`${itemId} was dropped for itself`)
      return
    }
    const original = item?.older.find((older) => older.itemId === originalItemId)
    if (!original)
      this.#wrong.push(`${itemId} was dropped for ${originalItemId}, which is no older one of it`)
    else if (original.end && original.end.seq < (this.#dropsMayWait ? item!.committed : this.#before))
      this.#wrong.push(`${itemId} was dropped although its original was over`)
    if (item?.toldNew) this.#wrong.push(`${itemId} was dropped although its sender was told that it is new`)
  }

  /** Whoever seals or keeps an item took it for no duplicate when it came. */
  #taken(position: Position): void {
    const item = this.#items.at(position)
    if (!item?.explicit || item.original) return
    const original = liveOriginalOf(item)
    if (original)
      this.#wrong.push(`missed duplicate: ${item.itemId} is taken, and ${original.itemId} is live`)
    item.original = true
  }
}
