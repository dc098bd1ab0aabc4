/**
 * What goes into a group machine and what comes out (docs/architecture/protocol.md, "Groups"). One group is one
 * (buffer uid, group key); the machine knows nothing of payloads, only of items with sizes and times.
 *
 * All times are Unix ms of ONE clock, the broker's; sizes are payload bytes.
 */
import type { DlqReason, FlushReason } from '../domain/model.ts'

export interface GroupItem {
  /** Payload bytes. */
  readonly bytes: number
  /** The broker's timestamp of its pack, ms; earlier when the clock was ahead of what it is now. */
  at: number
}

/**
 * The part of a buffer's configuration that groups follow. Shared by all groups of a buffer: never changed
 * in place, a change arrives as an input.
 */
export interface GroupPolicy {
  readonly maxItems: number
  readonly maxBytes: number
  readonly idleTimeoutMs: number
  readonly maxWaitFromFirstMs: number
  /** Items and bytes at which a segment is full. */
  readonly maxGroupItems: number
  readonly maxGroupBytes: number
  /** Attempts in all, the first included. */
  readonly maxAttempts: number
  readonly backoff: { readonly initialMs: number; readonly maxMs: number; readonly multiplier: number }
  readonly minDelayBetweenFlushMs: number
  readonly maxConcurrencyPerGroup: number
  /**
   * `held`: the buffer is disabled, or its customer suspended; nothing is sealed, no attempt begins, what runs finishes.
   * `discarding`: it was deleted while disabled; all that does not run is over.
   * `unknown`: nobody has read the configuration yet; as `held`, and the items wait for it to be placed: see `UNKNOWN`.
   */
  readonly state: 'active' | 'held' | 'discarding' | 'unknown'
}

/**
 * Until the configuration of the buffer is known. Nothing is sealed or sent, and no segment is full. The back-off bounds
 * nothing, or a restored batch would be sent again before its time. A result must not be told before the policy is.
 */
export const UNKNOWN: GroupPolicy = {
  maxItems: Number.POSITIVE_INFINITY,
  maxBytes: Number.POSITIVE_INFINITY,
  idleTimeoutMs: Number.POSITIVE_INFINITY,
  maxWaitFromFirstMs: Number.POSITIVE_INFINITY,
  maxGroupItems: Number.POSITIVE_INFINITY,
  maxGroupBytes: Number.POSITIVE_INFINITY,
  maxAttempts: Number.POSITIVE_INFINITY,
  backoff: {
    initialMs: Number.POSITIVE_INFINITY,
    maxMs: Number.POSITIVE_INFINITY,
    multiplier: 1,
  },
  minDelayBetweenFlushMs: 0,
  maxConcurrencyPerGroup: 1,
  state: 'unknown',
}

/**
 * The life of a batch (docs/architecture/protocol.md, "Seals and versions"):
 * sealing → waiting → delivering → acking | dead-lettering | recording-attempt → waiting …; discarding ends a
 * batch of a deleted buffer. `waiting`: sealed, and its next attempt has not begun (back-off, hold, or an
 * older batch's turn).
 */
export type BatchPhase =
  | 'sealing'
  | 'waiting'
  | 'delivering'
  | 'recording-attempt'
  | 'acking'
  | 'dead-lettering'
  | 'discarding'

/** Only the machine changes a batch; the shard names it by this object until it is settled. */
export interface Batch<I> {
  /** Of one segment, in log order, at least one. */
  readonly items: readonly I[]
  /** Sum of the items' bytes; above `maxBytes` only when one item alone is. */
  readonly bytes: number
  readonly segment: number
  /** Means nothing on a restored batch: the journal does not keep it. */
  readonly reason: FlushReason
  /**
   * When it was to be sealed: its first trigger was true and nothing held the group deliberately (its
   * concurrency, its delay between flushes, a hold). Never after the seal, so seal − dueAt is lateness.
   */
  readonly dueAt: number
  /** Sequence of the sealing commit; 0 until sealed. */
  version: number
  /** Number of the attempt that runs, or, once a failure was counted, of the next one; 0 before the first. */
  attempt: number
  /** The next attempt does not begin before, ms. */
  nextAttemptAt: number
  phase: BatchPhase
}

export type AttemptOutcome = 'delivered' | 'retry' | 'rejected'

/**
 * `at` is the shard's time of the input, ms. A time before an earlier input's says that the clock was ahead and is right again.
 * An input that names a batch in another phase than its own is a broken invariant: `step` throws.
 */
export type Input<I> =
  | { readonly kind: 'item'; readonly at: number; readonly item: I }
  | { readonly kind: 'tick'; readonly at: number }
  /** The seal record is committed as `version`. */
  | { readonly kind: 'sealed'; readonly at: number; readonly batch: Batch<I>; readonly version: number }
  /** The seal was void or not committed: its items return to the front. */
  | { readonly kind: 'unsealed'; readonly at: number; readonly batch: Batch<I> }
  /**
   * Take-over: an outstanding sealed batch of the journal. `attempt` = highest attempt begun or recorded (0
   * and 1 alike: the first runs again). In any order among themselves; the version orders them. `running`: that
   * attempt still runs at the last owner, and its `result` will be told here, or `withdrawn` in its place.
   */
  | {
      readonly kind: 'restored'
      readonly at: number
      readonly items: readonly I[]
      readonly version: number
      readonly attempt: number
      readonly nextAttemptAt: number
      readonly segment: number
      readonly running?: boolean
    }
  /** The attempt ended; `rejected` is not retried. */
  | {
      readonly kind: 'result'
      readonly at: number
      readonly batch: Batch<I>
      readonly result: AttemptOutcome
    }
  /** The attempt was not begun after all; it may begin at `notBefore` at the earliest, ms. */
  | {
      readonly kind: 'withdrawn'
      readonly at: number
      readonly batch: Batch<I>
      readonly notBefore: number
    }
  /** The attempt record (number and time of the next attempt) is committed. */
  | { readonly kind: 'attempt-recorded'; readonly at: number; readonly batch: Batch<I> }
  /** Done, dead or discard is committed: the batch is over. */
  | { readonly kind: 'settled'; readonly at: number; readonly batch: Batch<I> }
  /** A buffered, not sealed item leaves. Like `unsealed` it only arms a wake, so all drops are in before anything is sealed. */
  | { readonly kind: 'dropped'; readonly at: number; readonly item: I }
  | { readonly kind: 'policy'; readonly at: number; readonly policy: GroupPolicy }

export type Effect<I> =
  /** Commit a seal record. A group has at most one seal on its way, so a commit never holds two of it. */
  | { readonly kind: 'seal'; readonly batch: Batch<I> }
  | { readonly kind: 'deliver'; readonly batch: Batch<I> }
  /** Commit `batch.attempt` and `batch.nextAttemptAt`. */
  | { readonly kind: 'record-attempt'; readonly batch: Batch<I> }
  | { readonly kind: 'ack'; readonly batch: Batch<I> }
  | { readonly kind: 'dead-letter'; readonly batch: Batch<I>; readonly reason: DlqReason }
  /** These are over. With a batch: a sealed one, `settled` is expected; without: the machine forgot the items. */
  | { readonly kind: 'discard'; readonly items: readonly I[]; readonly batch?: Batch<I> }
  /** Earliest time at which a tick is useful. Only emitted when none is armed or this one is earlier; a tick disarms. */
  | { readonly kind: 'wake'; readonly at: number }
  /**
   * Nothing is buffered or in flight: forget the group. Whoever opens it again within the delay between flushes gives it its
   * `lastSealAt`.
   */
  | { readonly kind: 'retire' }
