import type { Log, LogMessage } from './broker.ts'

/**
 * The message at `seq`; undefined: it was purged, or lost. Purges take the beginning of a log, and losses its end, so a server that has
 * a later message is not behind. Rejects where the server that answers has neither. Two answers would not tell, for one may come from
 * a server that is behind and the other from its leader.
 */
export async function messageAt(log: Pick<Log, 'range'>, seq: number): Promise<LogMessage | undefined> {
  for await (const first of log.range(seq, Number.MAX_SAFE_INTEGER))
    return first.seq === seq ? first : undefined
  throw new Error(`a server that was behind has no messages from ${seq} on`)
}
