/** Everything outside the owners: the broker's streams, Postgres, the destination. Every step on it is atomic. */
import { createHash, type Hash } from 'node:crypto'
import { decodePack } from '../../../internal/domain/pack.ts'
import type { AppendAnswer } from '../../../internal/shard/broker.ts'
import type { BatchName } from '../../../internal/shard/journal/batch-name.ts'
import { batchKey } from '../../../internal/shard/journal/batch-name.ts'
import { decodeCommit } from '../../../internal/shard/journal/codec.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import type { DropRecord, JournalRecord, Position } from '../../../internal/shard/journal/records.ts'
import { emptyState, type FoldState, isOver } from '../../../internal/shard/journal/state.ts'
import type { DeadBatch, DeliveryFact } from '../../../internal/shard/ports.ts'
import type { Events } from './events.ts'
import { Stream } from './streams.ts'

/**
 * What Postgres must guarantee; left out, the checker must notice. `postgres-lock`: the epoch is looked at before the
 * row is written, but not locked.
 */
export const RULES = ['postgres-fence', 'postgres-lock', 'tombstone'] as const
export type Rule = (typeof RULES)[number]

type Hearer = (data: Uint8Array, reply?: string) => void

export interface Sent {
  key: string
  body: string
  delivered: boolean
  /** Sent by the owner of the last claim. */
  current: boolean
  items: string[]
}

export class World {
  readonly events: Events
  readonly inbox = new Stream({ windowMs: 30_000 })
  readonly journal = new Stream({ windowMs: 120_000 })
  readonly sent: Sent[] = []
  readonly rows = new Map<string, DeadBatch>()
  readonly deletedRows = new Map<string, DeadBatch>()
  readonly tombstones = new Set<string>()
  readonly wrong: string[] = []
  readonly facts: DeliveryFact[] = []
  projected = 0
  epoch = 0
  /** The fold of the whole journal as it was written, purged or not: what is true. */
  readonly truth: FoldState = emptyState()
  readonly delivered = new Set<string>()
  /** Settled batches as the journal tells them, for the counters. */
  settled = 0
  faults = true
  failing = 0.3

  readonly #leftOut: Rule | undefined
  /** Of items, where they were stored first: `seq/index`. */
  readonly #positions = new Map<string, string>()
  /** Sequence of the commit that says so, by position. */
  readonly #overAt = new Map<string, number>()
  readonly #subscribers = new Map<string, Set<Hearer>>()
  readonly #history: Hash = createHash('sha256')

  constructor(events: Events, leftOut?: Rule) {
    this.events = events
    this.#leftOut = leftOut
  }

  holds(rule: Rule): boolean {
    return this.#leftOut !== rule
  }

  /** Of everything that was written, sent and stored as dead letters, with its time; to be asked for once. */
  historyHash(): string {
    return this.#history.digest('hex')
  }

  #note(what: string, bytes: Uint8Array): void {
    this.#history.update(`${this.events.now} ${what} `).update(bytes)
  }

  send(subject: string, data: Uint8Array, reply?: string): void {
    const bytes = Buffer.from(data)
    this.events.after(this.events.between(0, 6), () => {
      for (const hear of this.#subscribers.get(subject) ?? []) hear(bytes, reply)
    })
  }

  subscribe(subject: string, hear: Hearer): () => void {
    const hearers = this.#subscribers.get(subject) ?? new Set()
    this.#subscribers.set(subject, hearers.add(hear))
    return () => {
      hearers.delete(hear)
      if (hearers.size === 0) this.#subscribers.delete(subject)
    }
  }

  appendJournal(data: Uint8Array, msgId: string, expectLastSeq?: number): AppendAnswer {
    const answer = this.journal.append(this.events.now, data, msgId, expectLastSeq)
    if (answer.kind !== 'stored' || answer.duplicate) return answer
    this.#note('commit', data)
    const commit = decodeCommit(data)
    const claims = commit.records.some(({ type }) => type === 'epoch')
    if (!claims && commit.epoch !== this.truth.epoch)
      this.wrong.push(`a commit of epoch ${commit.epoch} behind the claim ${this.truth.epoch}`)
    const ending = commit.records.flatMap((record) => this.#endedBy(record))
    const applied = applyCommit(this.truth, { seq: answer.seq, commit })
    for (const position of ending)
      if (isOver(this.truth, position)) this.#overAt.set(`${position.seq}/${position.index}`, answer.seq)
    commit.records.forEach((record, index) => {
      if (record.type === 'done') this.delivered.add(batchKey(record))
      if ((record.type === 'done' || record.type === 'dead') && applied[index]) this.settled++
      if (record.type === 'drop' && applied[index]) this.#judgeDrop(record, answer.seq)
    })
    return answer
  }

  /** Duplicate or not, its items stand where the first append put them. */
  appendInbox(data: Uint8Array, msgId: string): AppendAnswer {
    const answer = this.inbox.append(this.events.now, data, msgId)
    if (answer.kind !== 'stored') return answer
    const { seq } = answer
    decodePack(data, ({ itemId }, index) => {
      if (!this.#positions.has(itemId)) this.#positions.set(itemId, `${seq}/${index}`)
    })
    return answer
  }

  /** Positions that a record says are over. */
  #endedBy(record: JournalRecord): readonly Position[] {
    switch (record.type) {
      case 'done':
      case 'dead':
        return this.truth.batches.get(batchKey(record))?.seal.positions ?? []
      case 'discard':
        return record.batch
          ? (this.truth.batches.get(batchKey(record.batch))?.seal.positions ?? [])
          : record.positions
      case 'drop':
        return [record.position]
      default:
        return []
    }
  }

  /** The owner learns that an original is over with the answer to its commit: what it drops may be in the next one. */
  #judgeDrop({ originalItemId, itemId }: DropRecord, seq: number): void {
    // An append that was stored twice.
    if (originalItemId === itemId) return
    const overAt = this.#overAt.get(this.#positions.get(originalItemId) ?? '')
    if (overAt !== undefined && overAt < seq - 1)
      this.wrong.push(`${itemId} was dropped although its original was over`)
  }

  deliver(key: string, body: Uint8Array, epoch: number): number {
    this.#note(key, body)
    const text = Buffer.from(body).toString()
    const luck = this.events.random()
    const status = luck < this.failing ? (luck < this.failing / 8 ? 400 : 500) : 200
    const items = (JSON.parse(text).items as { payload: { id: string } }[]).map((item) => item.payload.id)
    this.sent.push({ key, body: text, delivered: status === 200, current: epoch === this.truth.epoch, items })
    return status
  }

  raise(epoch: number): 'fenced' | 'raised' {
    if (epoch < this.epoch) return 'fenced'
    this.epoch = epoch
    return 'raised'
  }

  writeDeadLetter(epoch: number, batch: DeadBatch): 'fenced' | 'stored' | 'known' {
    if (this.holds('postgres-lock') && this.fences(epoch)) return 'fenced'
    this.#note('writeDeadLetter', batch.body)
    const name = batchKey(batch)
    if (this.tombstones.has(name) || this.rows.has(name)) return 'known'
    if (this.deletedRows.has(name)) this.wrong.push(`second row ${name}`)
    this.rows.set(name, batch)
    // Some users look at their dead letters all the time.
    if (this.faults && this.events.random() < 0.3)
      this.events.after(this.events.between(0, 12), () => this.deleteRow(name))
    return 'stored'
  }

  known(epoch: number, names: BatchName[]): BatchName[] | 'fenced' {
    if (this.fences(epoch)) return 'fenced'
    return names.filter((name) => this.rows.has(batchKey(name)) || this.tombstones.has(batchKey(name)))
  }

  project(epoch: number, position: number, facts: DeliveryFact[]): 'fenced' | 'done' {
    if (this.fences(epoch)) return 'fenced'
    if (position <= this.projected) return 'done'
    this.projected = position
    this.facts.push(...facts)
    return 'done'
  }

  /** A higher epoch is stored. */
  fences(epoch: number): boolean {
    return this.holds('postgres-fence') && epoch < this.epoch
  }

  /** A user deletes a dead letter. */
  deleteRow(name: string): void {
    const row = this.rows.get(name)
    if (!row) return
    this.rows.delete(name)
    this.deletedRows.set(name, row)
    if (this.holds('tombstone')) this.tombstones.add(name)
  }
}
