/** A log that comes back from a backup: the stream as it was when it held its first messages only. */
import type { StreamConfig } from 'nats'
import type { Connection } from '../../../internal/nats/connection.ts'
import type { Log, LogMessage } from '../../../internal/shard/broker.ts'

/** The stream of `log` is made anew with what it held up to the sequence `to`; nothing may have been purged. */
export async function loseAbove(
  connection: Connection,
  log: Log,
  { stream, to }: { stream: string; to: number },
): Promise<void> {
  const kept: LogMessage[] = []
  const { firstSeq } = await log.state()
  for await (const message of log.range(firstSeq, to)) kept.push(message)
  const manager = await connection.nats.jetstreamManager()
  const { config } = await manager.streams.info(stream)
  await manager.streams.delete(stream)
  await manager.streams.add(config as StreamConfig)
  for (const { data, msgId, seq } of kept) {
    const answer = await log.append(data, { msgId: msgId ?? `${seq}`, timeoutMs: 5_000 })
    if (answer.kind !== 'stored' || answer.seq !== seq) throw new Error(JSON.stringify(answer))
  }
}
