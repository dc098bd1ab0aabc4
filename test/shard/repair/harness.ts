/** A shard with something of everything, the loss of a tail, and what owners send before and after. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { createJournalCopies } from '../../../internal/nats/log/journal-copies.ts'
import type { Database } from '../../../internal/postgres/connection.ts'
import { createRemembered } from '../../../internal/postgres/remembered.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { SNAPSHOTS, snapshotsOf } from '../../../internal/shard/archive/snapshot-subjects.ts'
import type { RepairOptions } from '../../../internal/shard/repair/ports.ts'
import type { TestBroker } from '../../nats/support.ts'
import { eventually } from '../../support/eventually.ts'
import type { TestBuffer } from '../../support/rows.ts'
import {
  createOwner,
  ingest,
  journalRecords,
  numbersOf,
  type Owner,
  type OwnerOptions,
} from '../real-owner.ts'
import { loseAbove } from './loss.ts'

export type Item = Parameters<typeof ingest>[2][number]

export class RepairHarness {
  readonly nats: TestBroker
  readonly db: Database
  readonly buffer: TestBuffer
  readonly shard: number
  readonly owners: Owner[] = []

  constructor(nats: TestBroker, db: Database, buffer: TestBuffer, shard: number) {
    this.nats = nats
    this.db = db
    this.buffer = buffer
    this.shard = shard
  }

  get inbox() {
    return this.nats.broker.inbox(this.shard)
  }

  get journal() {
    return this.nats.broker.journal(this.shard)
  }

  get archive() {
    return this.nats.broker.archive(this.shard)
  }

  /** The commits of complete snapshots, the newest first. */
  async snapshots(): Promise<number[]> {
    const { subjects } = await this.archive.list(SNAPSHOTS)
    return snapshotsOf(subjects).flatMap(({ name, hasEnd }) => (hasEnd ? name.seq : []))
  }

  /** An owner whose destination refuses groups `b` and `g`, for as long as it is told. Batches of two. */
  async own(refused: readonly string[], options: Partial<OwnerOptions> = {}): Promise<Owner> {
    const owner = createOwner({
      broker: this.nats.broker,
      db: this.db,
      buffer: this.buffer,
      shard: this.shard,
      maxAttempts: 1_000,
      destination: ({ body }) => (refused.includes(JSON.parse(body.toString()).svc.groupKey) ? 500 : 200),
      housekeeping: { everyMs: 20 },
      batch: { maxItems: 2, idleTimeoutMs: 60_000, maxWaitFromFirstMs: 60_000 },
      ...options,
    })
    this.owners.push(owner)
    await owner.shard.start()
    return owner
  }

  /** Ends what is still running. */
  async abandon(): Promise<void> {
    for (const { shard } of this.owners) await shard.abandon()
  }

  async send(...items: Item[]): Promise<void> {
    for (const item of items) await ingest(this.nats.broker, this.buffer, [item], this.shard)
  }

  /** Until the journal holds so many records of this type. */
  async wrote(type: string, count: number): Promise<void> {
    await eventually(async () => {
      const records = await journalRecords(this.nats.broker, this.shard)
      expect(records.filter(({ record }) => record.type === type).length).to.be.at.least(count)
    })
  }

  async lastSeqs(): Promise<{ inbox: number; journal: number }> {
    const [inbox, journal] = await Promise.all([this.inbox.state(), this.journal.state()])
    return { inbox: inbox.lastSeq, journal: journal.lastSeq }
  }

  lose(which: 'inbox' | 'journal', to: number): Promise<void> {
    const stream = which === 'inbox' ? `INBOX_${this.shard}` : `JOURNAL_${this.shard}`
    return loseAbove(this.nats.connection, this[which], { stream, to })
  }

  repairOptions(): RepairOptions {
    const clock = systemClock()
    const copies = createJournalCopies({ connection: this.nats.connection, clock, replicas: 1 })
    return {
      broker: this.nats.broker,
      shard: this.shard,
      clock,
      syncLagMs: 0,
      onWhole: () => {},
      copies,
      boot: randomUUID(),
      remembered: createRemembered(this.db),
    }
  }

  /** Everything that any owner ever sent: no key may have had two bodies. */
  expectOneBodyAKey(): void {
    const bodies = new Map<string, string>()
    for (const { key, body } of this.owners.flatMap(({ sent }) => sent)) {
      expect(bodies.get(key) ?? body, key).to.equal(body)
      bodies.set(key, body)
    }
  }
}

/** The numbers of all items that an owner's destination got, each attempt once. */
export function numbersSent(owner: Owner): number[] {
  const bodies = new Map(owner.sent.map(({ key, body }) => [key, body]))
  return [...bodies.values()].flatMap(numbersOf).sort((a, b) => a - b)
}
