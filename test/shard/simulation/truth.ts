/**
 * The fold of the whole journal as it was written, purged or not: what is true. Each record is judged as it is
 * stored, by what held right before it.
 */
import type { BatchName } from '../../../internal/shard/journal/batch-name.ts'
import { batchKey } from '../../../internal/shard/journal/batch-name.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import type { Commit, JournalRecord, Position } from '../../../internal/shard/journal/records.ts'
import { emptyState, type FoldState, isOver, type OpenBatch } from '../../../internal/shard/journal/state.ts'
import type { End, Items, StoredItem } from './items.ts'

/** A record with its place in the journal, and what it met. */
export interface Taken {
  /** Of its commit. */
  readonly seq: number
  /** Virtual ms. */
  readonly at: number
  /** Of the owner that wrote it. */
  readonly epoch: number
  /** false: it is void. */
  readonly applied: boolean
  /** The open batch that it names, as it was right before; of a seal the new one. */
  readonly batch: OpenBatch | undefined
}

export interface Judge {
  /** A record is stored and folded. */
  took(record: JournalRecord, taken: Taken): void
  /** Commits are gone: it forgets all that it was told, and is told again what is left. */
  forget(): void
}

export class Truth {
  state: FoldState = emptyState()
  /** Claims in their order, with the virtual ms at which they were stored. A lost one may have had the same epoch. */
  claims: { readonly epoch: number; readonly boot: string; readonly at: number }[] = []
  /** Ends of drops by the ids of the items, also of those that a power cut took: their senders may store them again where they stood. */
  readonly #drops = new Map<string, NonNullable<StoredItem['end']> & { position: Position }>()
  readonly #items: Items
  readonly #wrong: string[]
  #judges: readonly Judge[] = []

  constructor(items: Items, wrong: string[]) {
    this.#items = items
    this.#wrong = wrong
  }

  get epoch(): number {
    return this.state.epoch
  }

  /** From now on they see every record, in this order. */
  judgedBy(...judges: readonly Judge[]): void {
    this.#judges = judges
  }

  isOver(position: Position): boolean {
    return isOver(this.state, position)
  }

  batch(name: BatchName): OpenBatch | undefined {
    return this.state.batches.get(batchKey(name))
  }

  /** Of an item that is stored now, and was dropped where it stands; null: it was not. */
  droppedAt({ itemId, position: { seq, index } }: StoredItem): StoredItem['end'] {
    const drop = this.#drops.get(itemId)
    return drop?.position.seq === seq && drop.position.index === index ? drop : null
  }

  /** Nothing is committed. */
  forget(): void {
    this.#drops.clear()
    this.state = emptyState()
    this.claims = []
    for (const judge of this.#judges) judge.forget()
  }

  take(seq: number, at: number, commit: Commit): void {
    const claims = commit.records.some(({ type }) => type === 'epoch')
    const { epoch, boot } = commit
    if (!claims && (epoch !== this.epoch || boot !== this.claims.at(-1)?.boot))
      this.#wrong.push(`a commit of epoch ${epoch} behind the claim ${this.epoch}`)
    if (claims) this.claims.push({ epoch: seq, boot, at })
    if (commit.records.length === 0) applyCommit(this.state, { seq, commit })
    for (const record of commit.records) this.#takeOne(record, seq, at, commit)
  }

  /** One by one: what a record meets is what the one before it left. */
  #takeOne(record: JournalRecord, seq: number, at: number, commit: Commit): void {
    const before = openBatchOf(record, this.state)
    const ending = endedBy(record, before).filter((position) => !this.isOver(position))
    const [applied = false] = applyCommit(this.state, { seq, commit: { ...commit, records: [record] } })
    for (const position of ending) this.#end(position, record.type as End, seq, at)
    if (record.type === 'drop' && applied)
      this.#drops.set(record.itemId, { how: 'drop', seq, at, position: record.position })
    const batch =
      record.type === 'seal' ? this.batch({ groupId: record.groupId, version: seq }) : (before ?? undefined)
    const epoch = record.type === 'epoch' ? seq : commit.epoch
    for (const judge of this.#judges) judge.took(record, { seq, at, epoch, applied, batch })
  }

  #end(position: Position, how: End, seq: number, at: number): void {
    const item = this.#items.at(position)
    if (item && this.isOver(position)) item.end = { how, seq, at }
  }
}

/** With its attempt as it was: the fold changes it in place. */
function openBatchOf(record: JournalRecord, { batches }: FoldState): OpenBatch | undefined {
  const name = record.type === 'discard' ? record.batch : 'version' in record ? record : null
  const batch = name ? batches.get(batchKey(name)) : undefined
  return batch && { ...batch }
}

/** Positions that a record says are over. */
function endedBy(record: JournalRecord, batch: OpenBatch | undefined): readonly Position[] {
  switch (record.type) {
    case 'done':
    case 'dead':
      return batch?.seal.positions ?? []
    case 'discard':
      return record.batch ? (batch?.seal.positions ?? []) : record.positions
    case 'drop':
      return [record.position]
    default:
      return []
  }
}
