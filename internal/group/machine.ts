/**
 * The group machine (docs/architecture/protocol.md, "Groups"): one group's items become batches, and batches are
 * delivered, retried, dead-lettered or discarded. Pure and deterministic: time is an input, everything it wants done
 * is a value that it returns.
 *
 * It keeps: items of a group are sealed in log order, each in one batch at a time; with a concurrency of 1
 * no attempt of a batch begins before every older batch was delivered or became a dead letter; a wake is armed whenever
 * time alone will let the group go on.
 */
import { backoffDelayMs } from '../domain/backoff.ts'
import { flushReason, sizeReason } from './flush.ts'
import type { AttemptOutcome, Batch, BatchPhase, Effect, GroupItem, GroupPolicy, Input } from './model.ts'
import type { GroupState } from './state.ts'
import { isEmpty, isSealBlocked, nextDueAt, nextUsefulAt, startable } from './state.ts'

export type { GroupState }

type Of<I, K extends Input<I>['kind']> = Extract<Input<I>, { kind: K }>

/**
 * Takes one input. The state that was passed in is used up: it may be the returned one, updated in place.
 * Throws when the input names a batch or an item that is not where the input says it is.
 */
export function step<I extends GroupItem>(
  state: GroupState<I>,
  input: Input<I>,
): { state: GroupState<I>; effects: Effect<I>[] } {
  const effects: Effect<I>[] = []
  if (input.at < state.now) setBack(state, input.at)
  state.now = input.at
  if (input.kind === 'tick' || state.now >= (state.wakeAt ?? 0)) state.wakeAt = undefined
  if (isEmpty(state)) state.backlog.restart()
  // That nobody knew the policy was no hold: what is due is due since it would have been.
  const wasBlocked = isSealBlocked(state) && state.policy.state !== 'unknown'
  apply(state, input, effects)
  state.backlog.closeIfFull(state.policy)
  noteSize(state, input.kind === 'item' ? input.item.at : state.now)
  if (input.kind === 'unsealed') keepDue(state, input.batch.dueAt)
  else if (wasBlocked && !isSealBlocked(state)) state.freedAt = state.now
  // A void seal's items may be dropped one by one before anything is sealed again.
  if (input.kind === 'unsealed' || input.kind === 'dropped') armWake(state, state.now, effects)
  else pursue(state, effects)
  return { state, effects }
}

/** The clock was ahead. What the group noted or planned by it is no further away than if it were noted or planned now. */
function setBack<I extends GroupItem>(state: GroupState<I>, now: number): void {
  const past = (time: number | undefined) => (time === undefined ? undefined : Math.min(time, now))
  state.sizeDueAt = past(state.sizeDueAt)
  state.freedAt = past(state.freedAt)
  state.lastSealAt = past(state.lastSealAt)
  state.backlog.setBack(now)
  // Those of a seal that turns out to be void wait again.
  for (const { items } of state.batches ?? []) for (const item of items) item.at = Math.min(item.at, now)
  boundAttempts(state, now)
}

/** A next attempt is at most its delay away from `now`. */
function boundAttempts<I extends GroupItem>({ batches, policy }: GroupState<I>, now: number): void {
  for (const batch of batches ?? [])
    batch.nextAttemptAt = Math.min(batch.nextAttemptAt, now + delayBefore(batch.attempt, policy))
}

function apply<I extends GroupItem>(state: GroupState<I>, input: Input<I>, effects: Effect<I>[]): void {
  switch (input.kind) {
    case 'item':
      state.backlog.push(input.item)
      break
    case 'tick':
      break
    case 'sealed':
      sealed(state, input)
      break
    case 'unsealed':
      unsealed(state, input)
      break
    case 'restored':
      restored(state, input)
      break
    case 'result':
      demandPolicy(state)
      demand(state, input.batch, 'result', 'delivering')
      ended(state, input.batch, input.result, effects)
      break
    case 'withdrawn':
      demand(state, input.batch, 'withdrawn', 'delivering')
      input.batch.phase = 'waiting'
      input.batch.nextAttemptAt = input.notBefore
      break
    case 'attempt-recorded':
      demand(state, input.batch, 'attempt-recorded', 'recording-attempt')
      input.batch.phase = 'waiting'
      break
    case 'settled':
      demand(state, input.batch, 'settled', 'acking', 'dead-lettering', 'discarding')
      remove(state, input.batch)
      break
    case 'dropped':
      if (!state.backlog.drop(input.item)) throw new Error('group machine: the dropped item is not buffered')
      break
    case 'policy':
      changePolicy(state, input.policy)
  }
}

function sealed<I extends GroupItem>(state: GroupState<I>, { batch, version }: Of<I, 'sealed'>): void {
  demand(state, batch, 'sealed', 'sealing')
  batch.version = version
  batch.nextAttemptAt = state.now
  batch.phase = 'waiting'
}

function unsealed<I extends GroupItem>(state: GroupState<I>, { batch }: Of<I, 'unsealed'>): void {
  demand(state, batch, 'unsealed', 'sealing')
  remove(state, batch)
  state.backlog.giveBack(batch)
  // The delay since the flush before this one was over when this one was tried.
  state.lastSealAt = undefined
}

/** A void seal is no deliberate hold: what it was to take stays due since then. */
function keepDue<I extends GroupItem>(state: GroupState<I>, dueAt: number): void {
  state.freedAt = Math.min(dueAt, state.now)
  if (state.sizeDueAt !== undefined) state.sizeDueAt = Math.min(state.sizeDueAt, dueAt)
}

function restored<I extends GroupItem>(state: GroupState<I>, input: Of<I, 'restored'>): void {
  const { items, version, segment, running = false } = input
  const attempt = running ? Math.max(1, input.attempt) : input.attempt
  const batch: Batch<I> = {
    items,
    bytes: items.reduce((sum, item) => sum + item.bytes, 0),
    segment,
    reason: 'max_wait',
    dueAt: state.now,
    version,
    attempt,
    nextAttemptAt: Math.min(input.nextAttemptAt, state.now + delayBefore(attempt, state.policy)),
    phase: running ? 'delivering' : 'waiting',
  }
  const batches = state.batches ?? []
  const younger = batches.findIndex((other) => other.version === 0 || other.version > version)
  batches.splice(younger < 0 ? batches.length : younger, 0, batch)
  state.batches = batches
  state.backlog.startAt(segment)
  state.lastSealAt = state.now
}

function ended<I extends GroupItem>(
  state: GroupState<I>,
  batch: Batch<I>,
  result: AttemptOutcome,
  effects: Effect<I>[],
): void {
  if (result === 'delivered') {
    batch.phase = 'acking'
    effects.push({ kind: 'ack', batch })
  } else if (state.policy.state === 'discarding') discard(batch, effects)
  else if (result === 'rejected') deadLetter(batch, 'non_retryable_error', effects)
  else if (batch.attempt >= state.policy.maxAttempts) deadLetter(batch, 'max_retries_exceeded', effects)
  else {
    batch.attempt += 1
    batch.nextAttemptAt = state.now + delayBefore(batch.attempt, state.policy)
    batch.phase = 'recording-attempt'
    effects.push({ kind: 'record-attempt', batch })
  }
}

/** Also a planned attempt is at most its new delay away from now. */
function changePolicy<I extends GroupItem>(state: GroupState<I>, policy: GroupPolicy): void {
  const learned = state.policy.state === 'unknown' && policy.state !== 'unknown'
  state.policy = policy
  if (learned) placeAnew(state)
  boundAttempts(state, state.now)
}

/** What came before the policy was known, as if it came now that it is. */
function placeAnew<I extends GroupItem>(state: GroupState<I>): void {
  for (const item of state.backlog.drain()) {
    state.backlog.push(item)
    state.backlog.closeIfFull(state.policy)
    noteSize(state, item.at)
  }
}

/** Keeps `sizeDueAt`; `at` is when what just changed became true, should a size trigger hold now. */
function noteSize<I extends GroupItem>(state: GroupState<I>, at: number): void {
  const holds = state.backlog.size > 0 && sizeReason(state.backlog, state.policy) !== undefined
  if (!holds) state.sizeDueAt = undefined
  else state.sizeDueAt ??= Math.min(at, state.now)
}

/** Everything that the state now allows. */
function pursue<I extends GroupItem>(state: GroupState<I>, effects: Effect<I>[]): void {
  if (state.policy.state === 'discarding') discardWaiting(state, effects)
  else if (state.policy.state === 'active') {
    beginAttempts(state, effects)
    seal(state, effects)
  }
  if (isEmpty(state)) effects.push({ kind: 'retire' })
  else armWake(state, nextUsefulAt(state), effects)
}

function discardWaiting<I extends GroupItem>(state: GroupState<I>, effects: Effect<I>[]): void {
  for (const batch of state.batches ?? []) if (batch.phase === 'waiting') discard(batch, effects)
  if (state.backlog.size > 0) effects.push({ kind: 'discard', items: state.backlog.drain() })
  noteSize(state, state.now)
}

function beginAttempts<I extends GroupItem>(state: GroupState<I>, effects: Effect<I>[]): void {
  for (const batch of startable(state)) {
    if (batch.nextAttemptAt > state.now) continue
    batch.attempt = Math.max(1, batch.attempt)
    batch.phase = 'delivering'
    effects.push({ kind: 'deliver', batch })
  }
}

function seal<I extends GroupItem>(state: GroupState<I>, effects: Effect<I>[]): void {
  if (state.backlog.size === 0 || isSealBlocked(state)) return
  const dueAt = nextDueAt(state)
  if (dueAt > state.now) return
  const reason = flushReason(state.backlog, state.policy, state.now)
  if (!reason) throw new Error('group machine: due without a reason')
  const slice = state.backlog.take(state.policy)
  const batch: Batch<I> = {
    items: slice.items,
    bytes: slice.bytes,
    segment: slice.segment,
    // Enough items wait, but it was their bytes that closed this batch.
    reason: reason === 'items' && slice.items.length < state.policy.maxItems ? 'bytes' : reason,
    dueAt,
    version: 0,
    attempt: 0,
    nextAttemptAt: 0,
    phase: 'sealing',
  }
  state.batches ??= []
  state.batches.push(batch)
  state.lastSealAt = state.now
  noteSize(state, state.now)
  effects.push({ kind: 'seal', batch })
}

function armWake<I extends GroupItem>(
  state: GroupState<I>,
  at: number | undefined,
  effects: Effect<I>[],
): void {
  if (at === undefined || (state.wakeAt !== undefined && state.wakeAt <= at)) return
  state.wakeAt = at
  effects.push({ kind: 'wake', at })
}

function deadLetter<I>(
  batch: Batch<I>,
  reason: 'non_retryable_error' | 'max_retries_exceeded',
  effects: Effect<I>[],
): void {
  batch.phase = 'dead-lettering'
  effects.push({ kind: 'dead-letter', batch, reason })
}

function discard<I>(batch: Batch<I>, effects: Effect<I>[]): void {
  batch.phase = 'discarding'
  effects.push({ kind: 'discard', items: batch.items, batch })
}

/** Delay before attempt number `attempt`, ms; none before the first. */
function delayBefore(attempt: number, policy: GroupPolicy): number {
  return attempt < 2 ? 0 : backoffDelayMs(policy.backoff, attempt - 1)
}

function remove<I extends GroupItem>(state: GroupState<I>, batch: Batch<I>): void {
  const rest = state.batches?.filter((other) => other !== batch)
  state.batches = rest && rest.length > 0 ? rest : undefined
}

/** What a result means depends on the policy. */
function demandPolicy<I extends GroupItem>({ policy }: GroupState<I>): void {
  if (policy.state === 'unknown') throw new Error('group machine: a result before the policy is known')
}

function demand<I extends GroupItem>(
  state: GroupState<I>,
  batch: Batch<I>,
  input: string,
  ...phases: readonly BatchPhase[]
): void {
  if (state.batches?.includes(batch) && phases.includes(batch.phase)) return
  throw new Error(
    `group machine: ${input} for batch v${batch.version}, which is ${batch.phase} or not of this group`,
  )
}
