/**
 * What an owner writes into the journal of its shard (docs/architecture/protocol.md, "Journal records"). Times are
 * broker or owner time in Unix ms; sequences are journal sequences unless a field says inbox.
 */
import type { FlushReason } from '../../domain/model.ts'
import type { PackName } from '../../domain/pack-id.ts'
import type { DeliveryFact } from '../ports.ts'
import type { BatchName } from './batch-name.ts'

/** Where an item stands in the inbox, for ever: sequence of its pack and its index in it. */
export interface Position {
  readonly seq: number
  readonly index: number
}

/** Highest inbox message that an owner has seen: it must still be there, or purged, at the next claim. */
export interface HighWater {
  readonly seq: number
  readonly packId: string
}

export interface EpochRecord {
  type: 'epoch'
}

/** The owner lets go; these batches are still in flight until `deadline`. */
export interface ReleaseRecord {
  type: 'release'
  batches: readonly (BatchName & { deadline: number })[]
}

export interface SealRecord {
  type: 'seal'
  groupId: string
  bufferUid: string
  segment: number
  reason: FlushReason
  /** `receivedAt` of the first and of the last item. */
  firstItemAt: number
  lastActivityAt: number
  /** In delivery order. */
  positions: readonly Position[]
  /** First 16 bytes of SHA-256 over the item ids in order. */
  itemsHash: Uint8Array
  bodySha256: Uint8Array
  /** Version of the rule that joins items to a body. */
  serializer: number
}

/** The batch cannot be rebuilt: it is given up, and what is left of its items is live again. */
export interface UnsealRecord extends BatchName {
  type: 'unseal'
}

/** Committed before attempt `attempt` (>= 2) begins. */
export interface AttemptRecord extends BatchName {
  type: 'attempt'
  attempt: number
  nextAt: number
}

/** `done`: acknowledged with 2xx. `dead`: Postgres holds the dead letter. Now the items are over. */
export interface SettledRecord extends BatchName {
  type: 'done' | 'dead'
  fact: DeliveryFact
}

/** A duplicate of a buffered item; committed before anybody is told. */
export interface DropRecord {
  type: 'drop'
  position: Position
  itemId: string
  originalItemId: string
}

/** Items of a buffer that was deleted while disabled; `batch` when they were sealed. */
export interface DiscardRecord {
  type: 'discard'
  batch: BatchName | null
  positions: readonly Position[]
}

/** A live item carried into the journal: `item` is its encoding in the pack, `at` the broker's time of the pack. */
export interface KeptItem {
  position: Position
  at: number
  item: Uint8Array
}

export interface KeepRecord {
  type: 'keep'
  items: readonly KeptItem[]
}

/** Every inbox position below `seq` is over, or kept. */
export interface HorizonRecord {
  type: 'horizon'
  seq: number
}

/** Of these writers a pack with this number, or a later one, stands at or below `upTo` in the inbox. */
export interface SeenRecord {
  type: 'seen'
  /** Inbox sequence: every pack up to it is noted, and those that were repeated are over. */
  upTo: number
  writers: readonly PackName[]
}

export type JournalRecord =
  | EpochRecord
  | ReleaseRecord
  | SealRecord
  | UnsealRecord
  | AttemptRecord
  | SettledRecord
  | DropRecord
  | DiscardRecord
  | KeepRecord
  | HorizonRecord
  | SeenRecord

/** How many positions it goes through, about. */
export function weightOf(record: JournalRecord): number {
  if ('positions' in record) return record.positions.length
  if ('items' in record) return record.items.length
  return 'fact' in record ? record.fact.items : 1
}

/** A message of the journal before it has a sequence. */
export interface Commit {
  /** UUID of the owner's boot. */
  readonly boot: string
  /** 0 in the claim itself, whose sequence becomes the epoch. */
  readonly epoch: number
  /** The owner's time, Unix ms. */
  readonly at: number
  readonly highWater: HighWater | null
  readonly records: readonly JournalRecord[]
}

/** Of the commit, by their ordinals. It has one keep at most. */
export function keptItems({ records }: Pick<Commit, 'records'>): readonly KeptItem[] {
  return records.find((record) => record.type === 'keep')?.items ?? []
}

/** Journal commits are at most this long, but for one record that alone is longer. */
export const MAX_COMMIT_BYTES = 512 * 1024
/** They go through so many positions at most, but for one record that alone has more: a commit is applied in one turn of the event loop. */
export const MAX_COMMIT_POSITIONS = 10_000
