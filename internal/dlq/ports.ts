/** What the dead letter queue needs of Postgres and of deliveries. Every call of a store rejects while Postgres is away. */

import type { DeliveryConfig, DlqItem, ErrorClass } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'

export interface DeadLetterFilter {
  /** Caller-chosen id; rows of a deleted buffer keep theirs. */
  bufferId?: string | undefined
  /** 1 to 500. */
  limit: number
  /** Only those behind this place. Its row may be gone. */
  after?: DeadLetterPlace | undefined
}

/** A place in the lists: newest first, by time and then by id. */
export interface DeadLetterPlace {
  /** Unix ms. */
  createdAt: number
  dlqId: string
}

export interface DeadLetterStore {
  /** Newest first. Fewer than `limit` once they hold about 4 MB; none only when there are none. */
  list(scope: Scope, filter: DeadLetterFilter): Promise<DlqItem[]>
  /** Whether the scope holds a buffer with this id that is not deleted. */
  hasBuffer(scope: Scope, bufferId: string): Promise<boolean>
  /** Of any customer: the caller checks whose it is. */
  find(dlqId: string): Promise<DlqItem | undefined>
  /**
   * The exact body that failed; null: not stored, or not all of it; undefined: no such item. A large one takes seconds
   * over a slow line.
   */
  body(dlqId: string): Promise<Uint8Array | null | undefined>
  /** Removes the item with its body, and leaves a tombstone for the owner where one is needed. false: no such item. */
  remove(dlqId: string): Promise<boolean>
}

/** Removes `limit` at most, fewer when they are large, and none that is tried again at this moment; answers how many. */
export interface ExpiredDeadLetters {
  /** Created before this moment, Unix ms; not those of a customer that is suspended, or was resumed since. */
  removeOlder(before: number, limit: number): Promise<number>
  /** Of customers with more than `quota`, but for the newest `quota` of each. */
  removeBeyond(quota: number, limit: number): Promise<number>
  /** What was uploaded of bodies whose dead letters were never written: no part came for an hour. */
  removeAbandoned(limit: number): Promise<number>
}

/** Where a dead letter goes now. */
export interface RetryDestination {
  bufferUid: string
  /** Of the buffer as it is stored at this moment. */
  delivery: DeliveryConfig
}

/** The lock of one attempt. */
export interface RetryClaim {
  /** Names the attempt. */
  retryId: string
}

export interface RetryStore {
  /** undefined: the buffer of this item was deleted, whoever has its id now; or there is no such item. */
  destination(dlqId: string): Promise<RetryDestination | 'unreadable' | undefined>
  /**
   * Takes the lock for `leaseMs`, also from an attempt whose own lease ran out. `running`: another attempt holds
   * it. undefined: no such item.
   */
  claim(dlqId: string, leaseMs: number): Promise<RetryClaim | 'running' | undefined>
  /**
   * Counts a failed retry and gives the lock back; its error and time are kept unless another attempt took the
   * lock over since. Answers the failed retries so far, undefined when the item is gone.
   */
  fail(
    dlqId: string,
    retryId: string,
    failure: { lastError: string; lastStatusCode: number; lastResponse: string | null },
  ): Promise<number | undefined>
}

/** A manual retry that was attempted, whatever came of it. */
export interface RetryEvent {
  dlqId: string
  bufferId: string
  items: number
  delivered: boolean
  /** HTTP status, 0 when no response arrived. */
  statusCode: number
  /** null when delivered. */
  error: string | null
  durationMs: number
}

export interface RetryTelemetry {
  retry(event: RetryEvent): void
}

export interface AttemptResult {
  delivered: boolean
  /** HTTP status, 0 when no response arrived. */
  statusCode: number
  /** null when delivered. */
  errorClass: ErrorClass | null
  /** null when delivered. */
  error: string | null
  durationMs: number
  /** First bytes of the answer's body as text; null: none came. */
  responseBody: string | null
}

export interface Deliveries {
  /** One attempt within 10 s of its turn, to permitted addresses only. Never rejects. */
  send(
    target: DeliveryConfig,
    key: string,
    body: Uint8Array,
    options: { flow: string; customerId: string; maxWaitMs: number; proceed: () => boolean },
  ): Promise<AttemptResult>
}
