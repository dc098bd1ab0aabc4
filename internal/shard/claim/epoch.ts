/**
 * Makes the claim known to Postgres, so that every write of an older owner is refused there too. Before that it holds the journal
 * against what Postgres knows of it: one that came back from a backup, or lost its end, has other commits there, or none.
 */

import type { Clock } from '../../runtime/clock.ts'
import { retry } from '../../runtime/retry.ts'
import { asError } from '../../runtime/thrown.ts'
import type { Log } from '../broker.ts'
import { type CommitName, commitName } from '../journal/commit-name.ts'
import type { Journal } from '../journal/journal.ts'
import { proven } from '../journal/proven.ts'
import { LostTailError, WAY_OUT } from '../lost-tail.ts'
import { messageAt } from '../message-at.ts'
import type { ShardEvents, ShardOptions } from '../options.ts'
import { type DeadLetters, type Fence, FencedError } from '../ports.ts'
import type { ReadSnapshot } from './journal-reading.ts'

const RETRY_MS = 500

/** Nobody waits for the epoch any more. */
class EndedError extends FencedError {}

export interface RaiseOptions
  extends Pick<ShardOptions, 'clock'>,
    Pick<ShardEvents, 'ended' | 'onFatal' | 'onProblem'> {
  readonly fence: Fence
  /** What the journal's reading began with; null: its first commit. */
  readonly snapshot: ReadSnapshot | null
  /** The sequence that the journal began with when its stream was made; undefined: not known. */
  readonly origin: number | undefined
  readonly deadLetters: Pick<DeadLetters, 'remembered' | 'replaceEpoch' | 'raiseEpoch'>
  readonly journal: Pick<Journal, 'prove'>
  /** The same journal as the broker has it. */
  readonly log: Pick<Log, 'range'>
}

/**
 * Resolves when Postgres knows it. Where Postgres knows a commit that the journal does not have: FencedError when the
 * journal has a later claim, LostTailError when it has none, for then the journal lost that commit. Retried while
 * Postgres is away. Nothing may be projected under this epoch before. Counters of commits below the journal's beginning are
 * a problem to report and no reason to stop: nothing can mean two things in logs that begin later.
 */
export function raiseEpoch(options: RaiseOptions): Promise<void> {
  const { fence, deadLetters, clock, ended, onFatal, onProblem } = options
  const raise = async () => {
    if (ended()) throw new EndedError('the shard ended before its epoch was raised')
    await raiseOnce(options)
  }
  const onFailure = async (error: unknown) => {
    if (error instanceof LostTailError) await rememberLoss(deadLetters, fence.shard, clock)
    if (error instanceof FencedError || error instanceof LostTailError) throw error
    if (!ended()) onProblem('the epoch cannot be raised in Postgres', error)
  }
  const raised = retry(raise, { clock, pauseMs: RETRY_MS, onFailure })
  raised.catch((error: unknown) => {
    if (!ended()) onFatal(asError(error))
  })
  return raised
}

/** What is compared is replaced only as it was read: another owner may have raised it meanwhile, or counted on until it is fenced. */
async function raiseOnce(options: RaiseOptions): Promise<void> {
  const { fence, origin = 0, deadLetters, journal, onProblem } = options
  let claim: CommitName
  do {
    claim = (await deadLetters.remembered(fence.shard)).claim
    await proven(journal, () => compare(claim, options, claimMissingIn(options.snapshot, claim)))
  } while (!(await deadLetters.replaceEpoch(fence, claim)))
  const { counted } = await deadLetters.remembered(fence.shard)
  await proven(journal, () => compare(counted, options))
  const { seq } = counted
  if (0 < seq && seq < origin) onProblem('the logs were made anew', formerLogs(seq, origin))
}

/** Why the snapshot is not of a journal in which this claim was stored; null when it may be. Of what was cut off nothing else tells. */
function claimMissingIn(snapshot: ReadSnapshot | null, { seq }: CommitName): string | null {
  if (snapshot === null || seq <= snapshot.claim || snapshot.name.seq < seq) return null
  return `Postgres knows the claim ${seq}, and a snapshot at ${snapshot.name.seq} none behind ${snapshot.claim}`
}

/** Rejects with LostTailError. Nothing is known yet of the commits of this claim: what stands from it on was another's. */
async function compare(
  known: CommitName,
  { fence, log }: RaiseOptions,
  missing: string | null = null,
): Promise<void> {
  const { shard, epoch, identity } = fence
  const isOther = known.seq >= epoch && known.identity !== identity
  const other = isOther ? `Postgres knows ${known.seq} of another` : missing
  const fault = other ?? (await faultOf(log, known))
  if (fault !== null)
    throw new LostTailError(
      `shard ${shard}: the journal lost messages, its last claim is ${epoch} (${fault}): ${WAY_OUT}`,
    )
}

/**
 * Why the journal is not one in which the commit was stored; null when it may be: the commit is there, or it was purged. Rejects when a
 * server answers that is behind.
 */
export async function faultOf(
  log: Pick<Log, 'range'>,
  { seq, identity }: CommitName,
): Promise<string | null> {
  if (seq === 0) return null
  const found = await messageAt(log, seq)
  const isSame = !found || identity === null || commitName(seq, found.data).identity === identity
  return isSame ? null : `another commit stands at ${seq}, where Postgres knows one`
}

function formerLogs(counted: number, origin: number): Error {
  return new Error(
    `the journal begins at ${origin}, and commits up to ${counted} of a former one were counted: what that one and its inbox held is gone`,
  )
}

/**
 * Keeps every later claim from running the shard before its repair: by their own records claims bring the journal
 * past the end that it once had, and nothing would tell any more. Positions are microseconds since 1970 and grow by
 * one, so the present moment is above them all. Best effort: without Postgres nothing is remembered.
 */
export async function rememberLoss(
  deadLetters: Pick<DeadLetters, 'raiseEpoch'>,
  shard: number,
  clock: Clock,
): Promise<void> {
  await deadLetters.raiseEpoch({ shard, epoch: clock.now() * 1_000 }).catch(() => {})
}
