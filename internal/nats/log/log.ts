/** One stream as a log: append, read, purge. All reads but `follow` and `range` come from a server that takes itself for the leader. */
import type { Clock } from '../../runtime/clock.ts'
import type { AppendAnswer, Log, LogMessage, LogState, Reading } from '../../shard/broker.ts'
import type { Connection } from '../connection.ts'
import type { LogName } from '../names.ts'
import { BrokerApiError, MESSAGE_NOT_FOUND, StreamApi } from '../streams/stream-api.ts'
import type { Appender } from './append.ts'
import { msgIdOf } from './delivered.ts'
import { readRange } from './range.ts'
import { Reader } from './reader.ts'

interface StreamInfo {
  config: { max_bytes: number; first_seq?: number }
  ts?: string
  state: { messages: number; bytes: number; first_seq: number; last_seq: number }
  cluster?: ClusterInfo
}

/** Of a stream with replicas; `replicas`: its servers but the one that answers. */
export interface ClusterInfo {
  leader?: string
  replicas?: readonly { name: string }[]
}

interface StoredMessage {
  message: { seq: number; hdrs?: string; data?: string; time: string }
}

/**
 * A server that is cut off from its peers takes itself for the leader for some 15 s. Then it answers STREAM.INFO with what it had,
 * and names no leader (measured with NATS 2.14: for a minute and more).
 */
export function isFromLeader(cluster: ClusterInfo | undefined): boolean {
  if (cluster === undefined) return true
  const { leader, replicas = [] } = cluster
  return Boolean(leader) && replicas.every(({ name }) => name !== leader)
}

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
    const { config, state, ts, cluster } = await this.#api.ask<StreamInfo>('STREAM.INFO')
    if (!isFromLeader(cluster))
      throw new Error(`stream ${this.#options.name.stream}: a server answered that is not its leader`)
    return {
      firstSeq: state.messages === 0 ? state.last_seq + 1 : state.first_seq,
      lastSeq: state.last_seq,
      messages: state.messages,
      bytes: state.bytes,
      maxBytes: config.max_bytes,
      ...(config.first_seq !== undefined && { origin: config.first_seq }),
      ...(ts !== undefined && { at: Date.parse(ts) }),
    }
  }

  get(seq: number): Promise<LogMessage | undefined> {
    return this.#fetch({ seq })
  }

  last(): Promise<LogMessage | undefined> {
    return this.#fetch({ last_by_subj: '>' })
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

  async #fetch(which: object): Promise<LogMessage | undefined> {
    try {
      const { message } = await this.#api.ask<StoredMessage>('STREAM.MSG.GET', which)
      return {
        seq: message.seq,
        at: Date.parse(message.time),
        data: Buffer.from(message.data ?? '', 'base64'),
        msgId: msgIdOf(Buffer.from(message.hdrs ?? '', 'base64').toString('latin1')),
      }
    } catch (error) {
      if (error instanceof BrokerApiError && error.code === MESSAGE_NOT_FOUND) return undefined
      throw error
    }
  }
}
