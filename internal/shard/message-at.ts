import type { Log, LogMessage } from './broker.ts'

/**
 * The message at `seq`; undefined: it was purged. Purges take the beginning of a log, and losses its end, so a message below one that
 * is there was purged. `to`: of a message that is there, at or above `seq`. Rejects where the server that answers is behind: it has
 * neither. Two answers would not tell, for one may come from a server that is behind and the other from its leader.
 */
export async function messageAt(
  log: Pick<Log, 'range'>,
  seq: number,
  to: number,
): Promise<LogMessage | undefined> {
  for await (const first of log.range(seq, to)) return first.seq === seq ? first : undefined
  throw new Error(`a server that was behind has no messages from ${seq} to ${to}`)
}
