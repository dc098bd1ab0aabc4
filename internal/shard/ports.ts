import type { BufferRecord, DlqReason, ErrorClass, FlushReason, PauseReason } from '../domain/model.ts'
import type { BatchName } from './journal/batch-name.ts'
import type { CommitName } from './journal/commit-name.ts'

/**
 * Configuration of buffers by internal uid, cached; see `internal/buffers`. The cache alone decides which version is older:
 * what it says last holds.
 */
export interface Policies {
  /** The cached record, without waiting. */
  peek(uid: string): BufferRecord | undefined
  /** Cache, else the database. undefined: no such row. Rejects while the database is away and the cache is cold. */
  load(uid: string): Promise<BufferRecord | undefined>
  /**
   * Called after each change of a record; returns the unsubscriber. `holds`: which buffers must not be missed, also once
   * they are deleted.
   */
  onChange(listener: (record: BufferRecord) => void, holds: (uid: string) => boolean): () => void
}

/** A durable write of an owner: refused (`FencedError`) when a higher epoch is stored for the shard, or this one of another claim. */
export interface Fence {
  readonly shard: number
  readonly epoch: number
  /** Of the claim, as its `CommitName` has it. Absent: of no claim. */
  readonly identity?: string | null
}

/** What Postgres knows of a shard's journal; `NO_COMMIT`: nothing. */
export interface Known {
  /** The highest epoch. */
  readonly claim: CommitName
  /** Delivery counters hold the commits up to this one. */
  readonly counted: CommitName
}

export class FencedError extends Error {
  override readonly name = 'FencedError'
}

/** The same batch name is stored with another body: an invariant is broken, nothing was written. */
export class BodyConflictError extends Error {
  override readonly name = 'BodyConflictError'
}

export interface DeadBatch extends BatchName {
  dlqId: string
  bufferUid: string
  customerId: string
  projectId: string
  bufferId: string
  groupKey: string
  reason: DlqReason
  lastError: string
  lastStatusCode: number
  /** As `domain/last-response.ts` has cut it; null: the destination answered nothing. */
  lastResponse: string | null
  /** Zero-based index of the last attempt. */
  attempt: number
  itemCount: number
  messageIds: string[]
  firstPayloadPreview: string
  segment: number
  firstItemAt: number
  lastActivityAt: number
  payloadBytes: number
  /** The exact body that failed. */
  body: Uint8Array
  bodySha256: Uint8Array
  createdAt: number
}

/** What became of the write of a dead letter. */
export interface DeadWrite {
  /** `known`: the name was there, or its user had removed it. */
  outcome: 'stored' | 'known'
  /** The dead letter of this name, which an earlier write may have made; null: its user removed it. */
  dlqId: string | null
  /** This write disabled the buffer. */
  paused: boolean
}

/**
 * Owners' side of the dead letter queue and of the epoch row (docs/architecture/protocol.md, "Dead letters"). All
 * calls reject when Postgres is away.
 */
export interface DeadLetters {
  remembered(shard: number): Promise<Known>
  /** Stores the epoch where `known` is still the stored one. false: it is not, and nothing was stored. */
  replaceEpoch(fence: Fence, known: CommitName): Promise<boolean>
  /** Raises the stored epoch of the shard, whatever it was; rejects with FencedError when a higher one is stored. */
  raiseEpoch(fence: Fence): Promise<void>
  /** Which of these batches have a row or a tombstone already: they only lack their `dead` record. */
  known(fence: Fence, batches: BatchName[]): Promise<BatchName[]>
  /**
   * Stores a large body ahead of `write`, part by part, and goes on where an earlier call broke off. No lock is held
   * meanwhile. Does nothing for a small one. Repeatable. Rejects with FencedError.
   */
  upload(fence: Fence, batch: DeadBatch): Promise<void>
  /**
   * After `upload`. One transaction: lock the epoch row, insert unless the name exists or has a tombstone, count up
   * `consecutiveDlqCount` and disable the buffer at its threshold (not for deleted buffers).
   */
  write(fence: Fence, batch: DeadBatch): Promise<DeadWrite>
  /** `dead` of these is committed: their tombstones can go. */
  forgetTombstones(fence: Fence, batches: BatchName[]): Promise<void>
}

/**
 * Rows of deleted buffers, which go when no shard needs them any more (docs/architecture/protocol.md, "Deleted
 * buffers"). All calls reject when Postgres is away.
 */
export interface DeletedBuffers {
  /** How often a shard reports, ms. */
  readonly everyMs: number
  /**
   * Buffers deleted before `before` that the shard has not let go of yet; `before` is so long ago that nothing
   * of them is appended any more. Opaque text.
   */
  pending(shard: number): Promise<{ before: string; uids: string[] }>
  /**
   * Nothing of a buffer deleted before `before` is live on the shard or will ever be, but for those `held`; it
   * read its inbox up to `position`. Rejects with FencedError when a higher epoch is stored.
   */
  report(fence: Fence, report: { before: string; position: number; held: string[] }): Promise<void>
  /** Removes the rows of buffers that every shard of the installation has let go of. */
  remove(): Promise<void>
}

/** One settled batch, self-contained, in journal order. Times in ms. */
export interface DeliveryFact {
  outcome: 'delivered' | 'dead'
  bufferUid: string
  /** When it settled, Unix ms. */
  at: number
  items: number
  /** Attempts made, at least 1. */
  attempts: number
  /** Seal minus first item's storage. */
  timeToFlushMs: number
  /** Duration of the last attempt. */
  durationMs: number
}

/** Delivery counters as a projection of the journal: increments and position are one transaction. */
export interface Projection {
  /** Position reached for the shard (a journal sequence), 0 when none. */
  position(shard: number): Promise<number>
  /** Adds `facts` (all of commits <= position and above the stored position) and stores the position. No-op when the stored position is >= position. */
  project(fence: Fence, position: CommitName, facts: DeliveryFact[]): Promise<void>
}

export interface AttemptRequest {
  /** The buffer as it is now; asked when the attempt's turn has come. */
  record: () => BufferRecord
  /** Value of the idempotency header, `grp:<groupId>:v<version>`. */
  key: string
  body: Uint8Array
  /** Asked once, right before the request is sent; false withdraws it: nothing is sent, the result is `unsent`. */
  proceed: () => boolean
}

export interface AttemptResult {
  /** 2xx within the deadline. */
  delivered: boolean
  /** 4xx: the batch goes to the dead letter queue at once. */
  retryable: boolean
  /** HTTP status, 0 when no response arrived. */
  statusCode: number
  errorClass: ErrorClass | null
  error: string | null
  durationMs: number
  /** First bytes of the response body as text, null when none arrived. */
  responseBody: string | null
  /** Nothing was sent (withdrawn, or the destination's queue is full): it does not count as an attempt. */
  unsent?: boolean
}

export interface Deliverer {
  /** Whether an attempt with a body of so many bytes would be taken now. False: it would come back `unsent` at once. */
  hasRoom(record: BufferRecord, bytes: number): boolean
  /** One attempt with the record's current delivery configuration, at most 10 s in all; never rejects. */
  attempt(request: AttemptRequest): Promise<AttemptResult>
}

/** What each event of a batch names. */
interface BatchEvent extends BatchName {
  readonly shard: number
  readonly bufferId: string
  readonly items: number
}

interface FlushEvent extends BatchEvent {
  readonly reason: FlushReason
  readonly payloadBytes: number
  /** Actual minus due, ms. */
  readonly latenessMs: number
  readonly segment: number
}

type Answer = Pick<AttemptResult, 'statusCode' | 'errorClass' | 'error' | 'durationMs'>

export interface DeliveryEvent extends BatchEvent, Answer {
  readonly attempt: number
  readonly outcome: 'delivered' | 'retry' | 'rejected' | 'exhausted'
  readonly sampled: boolean
}

interface DeadEvent extends BatchEvent, Pick<DeadWrite, 'dlqId' | 'paused'> {
  readonly reason: DlqReason
}

/** One wide event each; the adapter turns them into a log line and metrics. */
export interface ShardTelemetry {
  ownership(event: { shard: number; epoch: number; state: string; replayMs?: number; error?: string }): void
  flush(event: FlushEvent): void
  delivery(event: DeliveryEvent): void
  dead(event: DeadEvent): void
  /** The service disabled a buffer, for so many dead letters in a row. */
  paused(event: { bufferId: string; bufferUid: string; reason: PauseReason; dlqId: string | null }): void
  discarded(event: { shard: number; bufferId: string; items: number }): void
  dropped(event: { shard: number; duplicates: number }): void
  /** Journal commit round trip, ms, with the number of its records. */
  commit(event: { shard: number; ms: number; records: number; bytes: number }): void
  gauges(event: {
    shard: number
    epoch: number
    openGroups: number
    bufferedItems: number
    bufferedBytes: number
    residentBytes: number
  }): void
  problem(event: { shard: number; what: string; error: string; detail?: Record<string, unknown> }): void
}

/** How full one log of a shard is. */
export interface LogUsage {
  readonly shard: number
  readonly log: 'inbox' | 'journal' | 'archive'
  readonly bytes: number
  /** Its `max_bytes`; 0 or less: none. */
  readonly maxBytes: number
}

export interface LogUsageTelemetry {
  /** All logs of the shards here, each second, as they were looked at last. */
  usage(usages: readonly LogUsage[]): void
  /** Above 80 % of its limit. */
  nearlyFull(usage: LogUsage): void
  /** Below 70 % again. */
  hasSpace(usage: LogUsage): void
}
