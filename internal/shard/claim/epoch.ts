/**
 * Makes the epoch known to Postgres, so that every write of an older owner is refused there too, and holds the
 * journal against what Postgres knows of it: a journal that came back from a backup ends before that.
 */

import type { Clock } from '../../runtime/clock.ts'
import { retry } from '../../runtime/retry.ts'
import { asError } from '../../runtime/thrown.ts'
import type { Journal } from '../journal/journal.ts'
import { LostTailError, WAY_OUT } from '../lost-tail.ts'
import { type DeadLetters, type Fence, FencedError, type Projection } from '../ports.ts'

const RETRY_MS = 500

/** Nobody waits for the epoch any more. */
class EndedError extends FencedError {}

export interface RaiseOptions {
  readonly fence: Fence
  /** The sequence that the journal began with when its stream was made; undefined: not known. */
  readonly origin: number | undefined
  readonly deadLetters: Pick<DeadLetters, 'raiseEpoch'>
  readonly projection: Pick<Projection, 'position'>
  readonly clock: Clock
  readonly journal: Pick<Journal, 'prove'>
  readonly ended: () => boolean
  readonly onFatal: (error: Error) => void
  readonly onProblem: (what: string, error: unknown) => void
}

/**
 * Resolves when Postgres knows it. A higher epoch there, or counters of commits from it on: FencedError when the
 * journal has a later claim too, LostTailError when it has none, for then the journal lost them. Retried while
 * Postgres is away. Nothing may be projected under this epoch before. Counters of commits below the journal's beginning are
 * a problem to report and no reason to stop: nothing can mean two things in logs that begin later.
 */
export function raiseEpoch(options: RaiseOptions): Promise<void> {
  const { clock, ended, onFatal, onProblem } = options
  const raise = async () => {
    if (ended()) throw new EndedError('the shard ended before its epoch was raised')
    await raiseOnce(options)
  }
  const onFailure = async (error: unknown) => {
    if (error instanceof EndedError) throw error
    if (error instanceof FencedError) throw await whoIsAhead(error, options)
    if (!ended()) onProblem('the epoch cannot be raised in Postgres', error)
  }
  const raised = retry(raise, { clock, pauseMs: RETRY_MS, onFailure })
  raised.catch((error: unknown) => {
    if (!ended()) onFatal(asError(error))
  })
  return raised
}

async function raiseOnce({
  fence,
  origin = 0,
  deadLetters,
  projection,
  onProblem,
}: RaiseOptions): Promise<void> {
  await deadLetters.raiseEpoch(fence)
  const counted = await projection.position(fence.shard)
  // Nothing is counted under this claim yet: where it stands, another commit stood.
  if (counted >= fence.epoch) throw new FencedError(`commits up to ${counted} are counted`)
  if (0 < counted && counted < origin) onProblem('the logs were made anew', formerLogs(counted, origin))
}

function formerLogs(counted: number, origin: number): Error {
  return new Error(
    `the journal begins at ${origin}, and commits up to ${counted} of a former one were counted: what that one and its inbox held is gone`,
  )
}

async function whoIsAhead(
  error: FencedError,
  { fence, journal, deadLetters, clock }: Pick<RaiseOptions, 'fence' | 'journal' | 'deadLetters' | 'clock'>,
): Promise<Error> {
  try {
    await journal.prove()
  } catch {
    return error
  }
  await rememberLoss(deadLetters, fence.shard, clock)
  return new LostTailError(
    `shard ${fence.shard}: the journal lost messages, its last claim is ${fence.epoch} (${error.message}): ${WAY_OUT}`,
    { cause: error },
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
