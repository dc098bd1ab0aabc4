/** Buffers as the shard's groups see them: the current record, its group policy, and what it holds here. */

import { isDeepStrictEqual } from 'node:util'
import type { BufferRecord } from '../../domain/model.ts'
import { type GroupPolicy, UNKNOWN } from '../../group/model.ts'

export class BufferState {
  readonly uid: string
  record: BufferRecord | undefined
  /** What groups follow now. */
  policy: GroupPolicy = UNKNOWN
  /** The same, but held: for groups whose replay or restoration is not over. */
  heldPolicy: GroupPolicy = UNKNOWN
  items = 0
  /** Payload bytes. */
  bytes = 0
  /** Encoded bytes: what the items take of a log. */
  storedBytes = 0

  constructor(uid: string) {
    this.uid = uid
  }

  /** One item of it more (1) or less (-1). */
  count({ bytes, size }: { bytes: number; size: number }, by: 1 | -1): void {
    this.items += by
    this.bytes += by * bytes
    this.storedBytes += by * size
  }

  /**
   * Takes what the cache of buffers says, whatever its version: after Postgres was restored an older one is the newest.
   * Whether its groups follow another policy now: most changes are none of theirs.
   */
  update(record: BufferRecord): boolean {
    this.record = record
    const policy = groupPolicy(record)
    if (isDeepStrictEqual(policy, this.policy)) return false
    this.policy = policy
    this.heldPolicy = { ...policy, state: 'held' }
    return true
  }
}

export function groupPolicy(record: BufferRecord): GroupPolicy {
  const { buffer } = record
  return {
    ...buffer.batch,
    maxGroupItems: buffer.overflow.maxGroupItems,
    maxGroupBytes: buffer.overflow.maxGroupBytes,
    maxAttempts: buffer.throughput.maxAttempts,
    backoff: buffer.throughput.backoff,
    minDelayBetweenFlushMs: buffer.throughput.minDelayBetweenFlushMs,
    maxConcurrencyPerGroup: buffer.throughput.maxConcurrencyPerGroup,
    state: stateOf(record),
  }
}

/**
 * Suspended: held, whatever else it is. Held as well while it cannot be delivered, for want of a secret. Enabled: active. Disabled: held. Deleted: delivered with the last configuration, or
 * discarded when it was disabled.
 */
function stateOf({ buffer, deleted, suspended, unreadable }: BufferRecord): GroupPolicy['state'] {
  if (suspended || (buffer.enabled && unreadable?.delivery)) return 'held'
  return buffer.enabled ? 'active' : deleted ? 'discarding' : 'held'
}
