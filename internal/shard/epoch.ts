/** Makes the epoch known to Postgres, so that every write of an older owner is refused there too. */
import type { Clock } from '../runtime/clock.ts'
import type { Journal } from './journal.ts'
import { type DeadLetters, type Fence, FencedError } from './ports.ts'
import { LostTailError, WAY_OUT } from './takeover.ts'

const RETRY_MS = 500

/**
 * Resolves when Postgres knows it. A higher epoch there: FencedError when the journal has a later claim too,
 * LostTailError when it has none, for then the journal lost it. Retried while Postgres is away.
 */
export function raiseEpoch(options: {
  fence: Fence
  deadLetters: Pick<DeadLetters, 'raiseEpoch'>
  clock: Clock
  journal: Pick<Journal, 'prove'>
  ended: () => boolean
  onFatal: (error: Error) => void
  onProblem: (what: string, error: unknown) => void
}): Promise<void> {
  const { fence, deadLetters, clock, journal, ended, onFatal, onProblem } = options
  const raised = (async () => {
    while (!ended()) {
      try {
        return await deadLetters.raiseEpoch(fence)
      } catch (error) {
        if (error instanceof FencedError) throw await whoIsAhead(error, fence, journal)
        if (!ended()) onProblem('the epoch cannot be raised in Postgres', error)
        await new Promise<void>((resume) => clock.after(RETRY_MS, resume))
      }
    }
    throw new FencedError('the shard ended before its epoch was raised')
  })()
  raised.catch((error: unknown) => {
    if (!ended()) onFatal(error instanceof Error ? error : new Error(String(error)))
  })
  return raised
}

async function whoIsAhead(error: FencedError, fence: Fence, journal: Pick<Journal, 'prove'>): Promise<Error> {
  try {
    await journal.prove()
  } catch {
    return error
  }
  return new LostTailError(
    `shard ${fence.shard}: Postgres knows a higher epoch than ${fence.epoch}, the last claim of the journal: ${WAY_OUT}`,
    { cause: error },
  )
}
