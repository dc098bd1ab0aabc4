/** The state of one group, and the questions that the machine asks of it. */
import { Backlog } from './backlog.ts'
import { timeDueAt } from './flush.ts'
import type { Batch, GroupItem, GroupPolicy } from './model.ts'

/**
 * The shard may read it; only `step` changes it. Kept small (100,000 of them with one waiting item each are normal): what a waiting
 * group does not need yet is undefined. All times in ms.
 */
export interface GroupState<I extends GroupItem> {
  /** Shared with all groups of the buffer. */
  policy: GroupPolicy
  /** The `at` of the last input. It goes back when the clock is set back. */
  now: number
  readonly backlog: Backlog<I>
  /** Sealed or being sealed and not settled, by version, the one being sealed last; at most one is. */
  batches: Batch<I>[] | undefined
  /** The earliest wake on its way; every later need of a tick re-arms when that one arrives. */
  wakeAt: number | undefined
  /**
   * Since when a size trigger has held for the front segment, over seals too (`lastSealAt` outweighs it then);
   * defined exactly while one holds. Never above `now`.
   */
  sizeDueAt: number | undefined
  /** When a hold or a taken slot last stopped a seal and ended. Never above `now`. */
  freedAt: number | undefined
  /** The last seal that was not void (or a take-over with sealed batches, for their seal was before). */
  lastSealAt: number | undefined
}

/** A group with nothing in it, at `at` (ms). `lastSealAt`: of the same group, before it retired. */
export function createGroup<I extends GroupItem>(
  policy: GroupPolicy,
  at: number,
  lastSealAt?: number,
): GroupState<I> {
  return {
    policy,
    now: at,
    backlog: new Backlog<I>(),
    batches: undefined,
    wakeAt: undefined,
    sizeDueAt: undefined,
    freedAt: undefined,
    lastSealAt,
  }
}

/** Nothing buffered, nothing in flight. */
export function isEmpty<I extends GroupItem>(state: GroupState<I>): boolean {
  return state.backlog.size === 0 && !state.batches
}

/** Whether something other than time stops the next seal: a hold, a seal on its way, or no free slot. */
export function isSealBlocked<I extends GroupItem>(state: GroupState<I>): boolean {
  if (state.policy.state !== 'active') return true
  if (!state.batches) return false
  return (
    slotsTaken(state.batches) >= state.policy.maxConcurrencyPerGroup ||
    state.batches.at(-1)?.phase === 'sealing'
  )
}

/** End of the delay between flushes, ms; 0 when none runs. */
export function delayEndsAt<I extends GroupItem>(state: GroupState<I>): number {
  return state.lastSealAt === undefined ? 0 : state.lastSealAt + state.policy.minDelayBetweenFlushMs
}

/**
 * When the next batch is due, ms: its first trigger holds and nothing holds the group deliberately. Only
 * while something is buffered and no seal is blocked.
 */
export function nextDueAt<I extends GroupItem>(state: GroupState<I>): number {
  const byTime = timeDueAt(state.backlog, state.policy)
  const triggered = state.sizeDueAt === undefined ? byTime : Math.min(byTime, state.sizeDueAt)
  return Math.max(triggered, state.freedAt ?? 0, delayEndsAt(state))
}

/** Earliest time at which a tick does something, ms; undefined when only another input can. */
export function nextUsefulAt<I extends GroupItem>(state: GroupState<I>): number | undefined {
  if (state.policy.state !== 'active') return undefined
  let at = Number.POSITIVE_INFINITY
  if (state.backlog.size > 0 && !isSealBlocked(state)) at = nextDueAt(state)
  for (const batch of startable(state)) at = Math.min(at, batch.nextAttemptAt)
  return at === Number.POSITIVE_INFINITY ? undefined : at
}

/** Waiting batches that have a slot: the oldest ones, when a lower concurrency or a take-over left too many. */
export function startable<I extends GroupItem>(state: GroupState<I>): readonly Batch<I>[] {
  if (!state.batches) return nothing
  let slots = state.policy.maxConcurrencyPerGroup
  return state.batches.filter((batch) => holdsSlot(batch) && slots-- > 0 && batch.phase === 'waiting')
}

const nothing: readonly never[] = Object.freeze([])

/** A delivered batch has left its slot: the journal keeps its done before what follows. */
function holdsSlot<I>(batch: Batch<I>): boolean {
  return batch.phase !== 'acking'
}

function slotsTaken<I>(batches: readonly Batch<I>[]): number {
  let taken = 0
  for (const batch of batches) if (holdsSlot(batch)) taken += 1
  return taken
}
