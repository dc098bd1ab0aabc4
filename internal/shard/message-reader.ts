/**
 * Reads messages again that memory gave up, until the broker answers: a batch can wait for its bytes, but a shard that
 * ended for one late answer would have to read everything anew.
 *
 * Invariant: a message is missing only where a server has a later one, and a proof follows: a server that is cut off from its peers
 * lacks what came since, and a stale owner sees the purges of its successor.
 */

import { retry } from '../runtime/retry.ts'
import { MissingMessageError, type ReadMessage } from './held/payload-cache.ts'
import { type Journal, JournalClosedError } from './journal/journal.ts'
import { messageAt } from './message-at.ts'
import type { ShardEvents, ShardOptions } from './options.ts'

const RETRY_MS = 500

interface MessageReaderOptions
  extends Pick<ShardOptions, 'broker' | 'shard' | 'clock'>,
    Pick<ShardEvents, 'ended' | 'onProblem'> {
  readonly journal: Pick<Journal, 'prove'>
}

/** Rejects with MissingMessageError, and otherwise only once the owner has ended or its journal takes no proof any more. */
export function messageReader(options: MessageReaderOptions): ReadMessage {
  const { broker, shard, journal, clock, ended, onProblem } = options
  const read: ReadMessage = async (source, seq, isNeeded) => {
    const log = source === 'inbox' ? broker.inbox(shard) : broker.journal(shard)
    const message = await log.get(seq)
    if (message || !isNeeded()) return message
    const found = await messageAt(log, seq)
    if (found || !isNeeded()) return found
    await journal.prove()
    throw new MissingMessageError(`${source} message ${seq} is gone`)
  }
  let told = false
  const onFailure = (error: unknown) => {
    if (ended() || error instanceof MissingMessageError || error instanceof JournalClosedError) throw error
    if (!told) onProblem('a stored message cannot be read', error)
    told = true
  }
  return async (source, seq, isNeeded) => {
    const message = await retry(() => read(source, seq, isNeeded), { clock, pauseMs: RETRY_MS, onFailure })
    told = false
    return message
  }
}
