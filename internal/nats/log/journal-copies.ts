/** Copies of journals in streams of their own (see `internal/shard/repair`). */
import { randomUUID } from 'node:crypto'
import { DiscardPolicy, NatsError, RetentionPolicy, StorageType } from 'nats'
import type { Clock } from '../../runtime/clock.ts'
import type { JournalCopies, JournalCopy } from '../../shard/repair/ports.ts'
import type { Connection } from '../connection.ts'
import { journalName, type LogName } from '../names.ts'
import { BrokerApiError, STREAM_NOT_FOUND, StreamApi } from '../streams/stream-api.ts'
import { addStream } from '../streams/stream-lookup.ts'
import { Appender } from './append.ts'
import { StreamLog } from './log.ts'

const APPEND_TIMEOUT_MS = 5_000
const PURGE_TIMEOUT_MS = 60_000

export interface JournalCopiesOptions {
  connection: Connection
  clock: Clock
  replicas: number
  /** In front of stream names and subjects; default empty. */
  prefix?: string
}

/** To be closed with `close` before the connection. */
export function createJournalCopies(options: JournalCopiesOptions): JournalCopies & { close(): void } {
  const { connection, clock, prefix = '' } = options
  const appender = new Appender(connection, clock)
  const logOf = (shard: number) =>
    new StreamLog({ connection, appender, clock, name: copyName(shard, prefix), prefix })
  return {
    load: (shard) => load(logOf(shard)),
    async save(shard, messages) {
      await remove(options, shard)
      await create(options, shard)
      const log = logOf(shard)
      // Of this copy alone: the broker remembers the ids of one that came back, and would take these for repetitions.
      const copyId = randomUUID()
      let number = 0
      for await (const message of messages) await append(log, message, `${copyId}-${number++}`)
    },
    remove: (shard) => remove(options, shard),
    async emptyJournal(shard, seq) {
      const { stream } = journalName(shard, prefix)
      await new StreamApi(connection, stream).ask('STREAM.PURGE', { seq }, undefined, PURGE_TIMEOUT_MS)
    },
    close: () => appender.close(),
  }
}

function copyName(shard: number, prefix: string): LogName {
  const subject = `${prefix}repair.${shard}`
  return { stream: `${prefix}REPAIR_${shard}`, subject, appendTo: subject }
}

async function load(log: StreamLog): Promise<JournalCopy | undefined> {
  try {
    const { firstSeq, messages } = await log.state()
    return { length: messages, read: (from, to) => read(log, firstSeq + from, firstSeq + to) }
  } catch (error) {
    if (error instanceof BrokerApiError && error.code === STREAM_NOT_FOUND) return undefined
    throw error
  }
}

async function* read(log: StreamLog, from: number, to: number): AsyncGenerator<Uint8Array> {
  let next = from
  for await (const { seq, data } of log.range(from, to - 1)) {
    if (seq !== next) break
    yield data
    next++
  }
  if (next < to) throw new Error(`the copy of the journal lacks message ${next}`)
}

/**
 * An empty stream. A deletion fails silently where the broker has not yet removed the files of an earlier one: it leaves
 * the messages behind, and a stream that is made again under the name has them (`fileStore.Delete` of nats-server).
 */
async function create({ connection, clock, replicas, prefix = '' }: JournalCopiesOptions, shard: number) {
  const { stream, subject } = copyName(shard, prefix)
  const manager = await connection.nats.jetstreamManager({ checkAPI: false })
  const { state } = await addStream(manager, clock, {
    name: stream,
    subjects: [subject],
    num_replicas: replicas,
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
  })
  if (state.messages > 0) {
    await new StreamApi(connection, stream).ask('STREAM.PURGE', {}, undefined, PURGE_TIMEOUT_MS)
  }
}

async function remove({ connection, prefix = '' }: JournalCopiesOptions, shard: number): Promise<void> {
  const manager = await connection.nats.jetstreamManager({ checkAPI: false })
  try {
    await manager.streams.delete(copyName(shard, prefix).stream)
  } catch (error) {
    if (!(error instanceof NatsError) || error.api_error?.err_code !== STREAM_NOT_FOUND) throw error
  }
}

async function append(log: StreamLog, data: Uint8Array, msgId: string): Promise<void> {
  const answer = await log.append(data, { msgId, timeoutMs: APPEND_TIMEOUT_MS })
  if (answer.kind !== 'stored') throw new Error(`the journal cannot be copied: ${JSON.stringify(answer)}`)
}
