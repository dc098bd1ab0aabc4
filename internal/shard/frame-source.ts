/**
 * Reads messages again that memory gave up, until the broker answers: a batch can wait for its bytes, but a shard that
 * ended for one late answer would have to read everything anew.
 */
import type { Clock } from '../runtime/clock.ts'
import type { Broker, LogMessage } from './broker.ts'
import type { FrameSource } from './frames.ts'

const RETRY_MS = 500

export interface FrameSourceOptions {
  readonly broker: Pick<Broker, 'inbox' | 'journal'>
  readonly shard: number
  readonly clock: Clock
  readonly ended: () => boolean
  readonly onProblem: (what: string, error: unknown) => void
}

/** Resolves to undefined when there is no such message any more; rejects only once the owner has ended. */
export function frameSource(
  options: FrameSourceOptions,
): (source: FrameSource, seq: number) => Promise<LogMessage | undefined> {
  const { broker, shard, clock, ended, onProblem } = options
  let told = false
  return async (source, seq) => {
    const log = source === 'inbox' ? broker.inbox(shard) : broker.journal(shard)
    for (;;) {
      try {
        const message = await log.get(seq)
        told = false
        return message
      } catch (error) {
        if (ended()) throw error
        if (!told) onProblem('a stored message cannot be read', error)
        told = true
      }
      await new Promise<void>((resume) => clock.after(RETRY_MS, resume))
    }
  }
}
