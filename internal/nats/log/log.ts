/** One stream as a log: append, read, purge. All reads but `follow` and `range` come from a server that takes itself for the leader. */
import type { Clock } from '../../runtime/clock.ts'
import type { AppendAnswer, Log, LogMessage, LogState, Reading } from '../../shard/broker.ts'
import type { Connection } from '../connection.ts'
import type { LogName } from '../names.ts'
import { StreamApi } from '../streams/stream-api.ts'
import type { Appender } from './append.ts'
import { readRange } from './range.ts'
import { Reader } from './reader.ts'
import { readInfo, readMessage, stateOf } from './stream-reads.ts'

export interface LogOptions {
  connection: Connection
  appender: Appender
  clock: Clock
  name: LogName
  /** In front of the subjects that callers name. */
  prefix: string
}

export class StreamLog implements Log {
  readonly #options: LogOptions
  readonly #api: StreamApi

  constructor(options: LogOptions) {
    this.#options = options
    this.#api = new StreamApi(options.connection, options.name.stream)
  }

  append(
    data: Uint8Array,
    options: { subject?: string; msgId: string; expectLastSeq?: number; timeoutMs: number },
  ): Promise<AppendAnswer> {
    const { appender, name, prefix } = this.#options
    const { msgId, expectLastSeq, timeoutMs } = options
    const subject = options.subject === undefined ? name.appendTo : prefix + options.subject
    return appender.append({ subject, data, msgId, expectLastSeq, timeoutMs })
  }

  async state(): Promise<LogState> {
    return stateOf(await readInfo(this.#api))
  }

  get(seq: number): Promise<LogMessage | undefined> {
    return readMessage(this.#api, { seq })
  }

  last(): Promise<LogMessage | undefined> {
    return readMessage(this.#api, { last_by_subj: '>' })
  }

  follow(
    from: number,
    handler: (messages: LogMessage[]) => void | Promise<void>,
    onError: (error: Error) => void,
  ): Reading {
    const { connection, clock, name } = this.#options
    return new Reader({ connection, clock, api: this.#api, stream: name.stream, from, handler, onError })
  }

  range(from: number, to: number): AsyncIterable<LogMessage> {
    return readRange(this, this.#options.clock, from, to)
  }

  async purgeBelow(seq: number): Promise<void> {
    const { firstSeq, lastSeq, messages } = await this.state()
    // NATS takes a limit of 0 or 1 for none, and removes everything.
    if (messages === 0 || seq <= firstSeq) return
    // What is appended from here on only lies above: the last message of now stays in any case.
    await this.#api.ask('STREAM.PURGE', { seq: Math.min(seq, lastSeq) })
  }
}
