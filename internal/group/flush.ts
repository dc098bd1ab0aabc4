/**
 * When a group is delivered (docs/reference/buffers.md, "Processing"): an ordered chain of small
 * predicates over its front segment, the first that holds gives the reason. Sizes come before times: a
 * group that waits for its turn runs out of time too, but its size is what closed it.
 */
import type { FlushReason } from '../domain/model.ts'
import type { GroupPolicy } from './model.ts'

/** The front segment of a group that has items. Times in ms; `lastAt` is the group's youngest item's. */
export interface Front {
  readonly items: number
  readonly bytes: number
  readonly full: boolean
  readonly firstAt: number
  readonly lastAt: number
}

interface SizeTrigger {
  readonly reason: FlushReason
  readonly holds: (front: Front, policy: GroupPolicy) => boolean
}

interface TimeTrigger {
  readonly reason: FlushReason
  /** It holds from the returned time on, ms. */
  readonly dueAt: (front: Front, policy: GroupPolicy) => number
}

const sizeTriggers: readonly SizeTrigger[] = [
  { reason: 'items', holds: (front, policy) => front.items >= policy.maxItems },
  { reason: 'bytes', holds: (front, policy) => front.bytes >= policy.maxBytes },
  { reason: 'segment', holds: (front) => front.full },
]

const timeTriggers: readonly TimeTrigger[] = [
  { reason: 'idle', dueAt: (front, policy) => front.lastAt + policy.idleTimeoutMs },
  { reason: 'max_wait', dueAt: (front, policy) => front.firstAt + policy.maxWaitFromFirstMs },
]

/** The first size trigger that holds: due at once. */
export function sizeReason(front: Front, policy: GroupPolicy): FlushReason | undefined {
  for (const { reason, holds } of sizeTriggers) if (holds(front, policy)) return reason
  return undefined
}

/** When the first of the time triggers holds, unless another item arrives, ms. */
export function timeDueAt(front: Front, policy: GroupPolicy): number {
  let earliest = Number.POSITIVE_INFINITY
  for (const { dueAt } of timeTriggers) earliest = Math.min(earliest, dueAt(front, policy))
  return earliest
}

/** The first trigger of the chain that holds at `now` (ms); undefined when none does. */
export function flushReason(front: Front, policy: GroupPolicy, now: number): FlushReason | undefined {
  const bySize = sizeReason(front, policy)
  if (bySize) return bySize
  for (const { reason, dueAt } of timeTriggers) if (dueAt(front, policy) <= now) return reason
  return undefined
}
