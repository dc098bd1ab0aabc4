import type { ApiKeyRecord, BufferRecord } from '../domain/model.ts'
import type { IngestAnswer } from './answer.ts'
import type { IngestHead } from './request.ts'

/** Buffers by caller-chosen id; cached and invalidated (docs/architecture/protocol.md, "Cached configuration"). */
export interface BufferDirectory {
  /** undefined: unknown, deleted, or not in the cache yet (then `loadById` tells). */
  peekById(bufferId: string): BufferRecord | undefined
  loadById(bufferId: string): Promise<BufferRecord | undefined>
}

/** API keys by their secret; a revoked or unknown key is undefined. */
export interface KeyDirectory {
  /** A key that is known and not revoked; undefined: `authenticate` tells. */
  peek(secret: string): ApiKeyRecord | undefined
  authenticate(secret: string): Promise<ApiKeyRecord | undefined>
}

export interface Charge {
  customerId: string
  bufferUid: string
  credits: number
}

/**
 * Credits by group commit (docs/architecture/protocol.md, "Credits"). What was charged stays unsettled until exactly
 * one of `settle` and `refund` is called for it.
 */
export type Receipt = { paid: true } | { paid: false; balance: number }

export interface Ledger {
  /** Resolves false with the balance when the customer cannot pay; rejects (LedgerUnavailableError) when the database cannot tell. */
  charge(charge: Charge): Receipt | Promise<Receipt>
  /** The item is stored and no duplicate. */
  settle(charge: Charge): void
  /** The item is a duplicate or was not stored: credited back with the next commit. */
  refund(charge: Charge): void
}

export class LedgerUnavailableError extends Error {
  override readonly name = 'LedgerUnavailableError'
}

export interface NewItem {
  /** UUID. */
  itemId: string
  bufferUid: string
  groupKey: string
  messageId: string
  /** Whether the sender gave the message id: only then is it deduplicated. */
  explicit: boolean
  credits: number
  receivedAt: number
  /** The sender's bytes, valid JSON in UTF-8. */
  payload: Uint8Array
}

/** `duplicateOf`: itemId of the buffered original, or null. `late` settles once the verdict is certain, when it was not in time. */
export interface Stored {
  duplicateOf: string | null
  late?: Promise<'new' | 'duplicate' | 'unknown'>
}

export interface Inbox {
  /** Resolves after the broker's PubAck (and the owner's verdict, when the id is explicit). Rejects with InboxUnavailableError: not stored for certain or not known to be. */
  append(item: NewItem): Promise<Stored>
  /** itemId of a buffered item with this id in this group, null when there is none, undefined when the owner does not answer. */
  findOriginal(bufferUid: string, groupKey: string, messageId: string): Promise<string | null | undefined>
}

/** What may hold no more of a shard than its share. */
export type Holder = 'buffer' | 'customer'

/** What buffers and customers hold of the shards' logs (docs/architecture/protocol.md, "Back-pressure"). */
export interface Shares {
  /** Who holds its whole share of the shard of this group, so that the item is refused. Costs nothing while nobody does. */
  over(record: BufferRecord, groupKey: string): Holder | null
}

/** `full`: the log reached its limit; `overloaded`: too much waits here; `closed`: this node shuts down. */
export type InboxUnavailableReason = 'unanswered' | 'full' | 'overloaded' | 'closed'

export class InboxUnavailableError extends Error {
  override readonly name = 'InboxUnavailableError'
  readonly reason: InboxUnavailableReason

  constructor(message: string, reason: InboxUnavailableReason = 'unanswered') {
    super(message)
    this.reason = reason
  }
}

/** What one try of an append came to (docs/architecture/protocol.md, "Appends"). */
export type PackAppendAnswer =
  | { kind: 'stored'; seq: number; duplicate: boolean }
  | { kind: 'in-process' }
  | { kind: 'full' }
  | { kind: 'wrong-sequence' }
  | { kind: 'unknown'; error: string }

/** The inbox of one shard, as far as packs need it. */
export interface PackLog {
  /** ONE attempt; repeated under the same id it stores at most once. Never rejects. */
  append(
    data: Uint8Array,
    options: { subject: string; msgId: string; timeoutMs: number },
  ): Promise<PackAppendAnswer>
}

/** The inbox of one shard, as far as it is asked whether it still has a pack. */
export interface StoredPacks {
  state(): Promise<{ firstSeq: number; lastSeq: number }>
  /** undefined: it is gone. */
  get(seq: number): Promise<{ readonly msgId: string | null } | undefined>
}

/** What the broker has lost although it acknowledged it to this ingress. */
export interface LostPackTelemetry {
  /** The pack at the sequence `acknowledged` is not there; the inbox ends, or goes on, at `end`. */
  lostPacks(event: { shard: number; acknowledged: number; end: number }): void
}

/** Plain messages between nodes, at most once. */
export interface Messages {
  publish(subject: string, data: Uint8Array, reply?: string): void
  /** The returned function ends the subscription. */
  subscribe(subject: string, handler: (data: Uint8Array) => void): () => void
}

/** One pack that the broker acknowledged. */
export interface PackTelemetry {
  /** `ms`: from the first try to the PubAck. */
  batch(event: { shard: number; items: number; bytes: number; ms: number; attempts: number }): void
}

/** What ingest tells of itself besides its answers; the adapter makes counters and log events of it. */
export interface IngestTelemetry {
  /** One request was answered. `head`: null where it was not read, for the request was refused before. */
  answered(answer: IngestAnswer, head: IngestHead | null): void
  /** The verdict of an item that was answered before it was known: `new` is paid for, the others are refunded. */
  lateVerdict(outcome: 'new' | 'duplicate' | 'unknown'): void
  /** The buffer or its customer holds its whole share: 503. */
  overShare(holder: Holder): void
  /** A dependency could not be asked or did not answer: 503. */
  unavailable(dependency: 'buffers' | 'keys' | 'ledger' | 'inbox' | 'secrets', error: unknown): void
}

/** From when on this ingress refuses a holder for its share of a shard, and until when. */
export interface ShareTelemetry {
  /** It holds `bytes` of the `limit` that it may hold. `id`: a buffer's uid, or a customer's id. */
  shareReached(event: { shard: number; holder: Holder; id: string; bytes: number; limit: number }): void
  /** It holds less again, or nobody says any more how much it holds. */
  shareLeft(event: { shard: number; holder: Holder; id: string }): void
}
