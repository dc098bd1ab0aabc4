/** What a repair is given, and what it needs of broker and Postgres beyond what an owner needs (docs/architecture/repair.md). */
import type { Clock } from '../../runtime/clock.ts'
import type { Broker } from '../broker.ts'
import type { BatchName } from '../journal/batch-name.ts'
import type { Known } from '../ports.ts'

/** Messages, numbered from 0 on. */
export interface JournalCopy {
  readonly length: number
  /** Those with from <= number < to, in order. Rejects when one is gone. */
  read(from: number, to: number): AsyncIterable<Uint8Array>
}

/** Copies of journals, each in a place of its own at the broker. All calls reject when it does not answer. */
export interface JournalCopies {
  /** undefined: there is none. */
  load(shard: number): Promise<JournalCopy | undefined>
  /** Replaces what there is. Resolves when every message is stored. */
  save(shard: number, messages: AsyncIterable<Uint8Array>): Promise<void>
  /** Also when there is none. */
  remove(shard: number): Promise<void>
  /** Empties the journal; its next message will have the sequence `seq`, which is above its last. */
  emptyJournal(shard: number, seq: number): Promise<void>
}

/** Read without a fence: a journal that lost messages has claims below the stored epoch. All calls reject when Postgres is away. */
export interface Remembered {
  known(shard: number): Promise<Known>
  /** Which of these batches have a row or a tombstone in the dead letter queue. */
  dead(batches: readonly BatchName[]): Promise<BatchName[]>
}

/** Of the repair of one shard. */
export interface RepairOptions {
  readonly broker: Broker
  readonly shard: number
  readonly clock: Clock
  /** UUID of this repair. */
  readonly boot: string
  readonly copies: JournalCopies
  readonly remembered: Remembered
  /** The logs and Postgres came back from one backup: nothing else could tell that versions behind it were used. */
  readonly renew?: boolean
  /** The broker has on disk what it acknowledged so long ago, ms; 0: it always has. */
  readonly syncLagMs: number
  /** Nodes may run the shard from now on, while the new journal comes to the disk. */
  readonly onWhole: () => void
}
