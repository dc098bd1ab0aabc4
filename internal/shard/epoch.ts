/** Makes the epoch known to Postgres, so that every write of an older owner is refused there too. */
import type { Clock } from '../runtime/clock.ts'
import { type DeadLetters, type Fence, FencedError } from './ports.ts'

const RETRY_MS = 500

/** Resolves when Postgres knows it; rejects with FencedError when it knows a higher one. Retried while Postgres is away. */
export function raiseEpoch(options: {
  fence: Fence
  deadLetters: Pick<DeadLetters, 'raiseEpoch'>
  clock: Clock
  ended: () => boolean
  onFatal: (error: Error) => void
  onProblem: (what: string, error: unknown) => void
}): Promise<void> {
  const { fence, deadLetters, clock, ended, onFatal, onProblem } = options
  const raised = (async () => {
    while (!ended()) {
      try {
        return await deadLetters.raiseEpoch(fence)
      } catch (error) {
        if (error instanceof FencedError) throw error
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
