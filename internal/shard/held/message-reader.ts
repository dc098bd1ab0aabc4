/**
 * Reads messages again that memory gave up, until the broker answers: a batch can wait for its bytes, but a shard that
 * ended for one late answer would have to read everything anew.
 */

import type { Clock } from '../../runtime/clock.ts'
import { retry } from '../../runtime/retry.ts'
import type { Broker, LogMessage } from '../broker.ts'
import type { MessageLog } from './payload-cache.ts'

const RETRY_MS = 500

export interface MessageReaderOptions {
  readonly broker: Pick<Broker, 'inbox' | 'journal'>
  readonly shard: number
  readonly clock: Clock
  readonly ended: () => boolean
  readonly onProblem: (what: string, error: unknown) => void
}

/** Resolves to undefined when there is no such message any more; rejects only once the owner has ended. */
export function messageReader(
  options: MessageReaderOptions,
): (source: MessageLog, seq: number) => Promise<LogMessage | undefined> {
  const { broker, shard, clock, ended, onProblem } = options
  let told = false
  return async (source, seq) => {
    const log = source === 'inbox' ? broker.inbox(shard) : broker.journal(shard)
    const onFailure = (error: unknown) => {
      if (ended()) throw error
      if (!told) onProblem('a stored message cannot be read', error)
      told = true
    }
    const message = await retry(() => log.get(seq), { clock, pauseMs: RETRY_MS, onFailure })
    told = false
    return message
  }
}
