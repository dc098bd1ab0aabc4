/**
 * The key-value bucket of all leases: a stream in memory that keeps the last message of each key for a TTL.
 * Its subjects and headers are those of any JetStream bucket, so the usual tools show it. Written by
 * compare-and-set only; read from the stream's leader.
 */
import { headers, NatsError, nanos, RetentionPolicy, StorageType, type StreamConfig } from 'nats'
import type { Connection } from '../connection.ts'
import { readPubAck } from '../log/append.ts'
import { BrokerApiError, MESSAGE_NOT_FOUND, STREAM_NOT_FOUND, StreamApi } from '../streams/stream-api.ts'

export interface LeaseBucketOptions {
  connection: Connection
  replicas: number
  ttlMs: number
  /** Default `penstock-leases`. */
  name?: string
}

/** The last message of a key; `data` undefined: it says that the key was deleted. */
export interface StoredLease {
  readonly revision: number
  readonly data: Uint8Array | undefined
}

export type WriteAnswer =
  | { kind: 'stored'; revision: number }
  /** The key is not at the expected revision: nothing was written. */
  | { kind: 'changed' }
  /** No bucket, or nobody leads it. */
  | { kind: 'missing' }

export const OPERATION_HEADER = 'KV-Operation'
const EXPECTATION_HEADER = 'Nats-Expected-Last-Subject-Sequence'
const NO_RESPONDERS = '503'
const NAME_IN_USE = 10058

export class LeaseBucket {
  readonly stream: string
  readonly api: StreamApi
  readonly #options: LeaseBucketOptions
  readonly #subject: string

  constructor(options: LeaseBucketOptions) {
    const { connection, name = 'penstock-leases' } = options
    this.#options = options
    this.stream = `KV_${name}`
    this.#subject = `$KV.${name}.`
    this.api = new StreamApi(connection, this.stream)
  }

  /** Resolves also when it is there already. Rejects when one of that name is set up otherwise, or nobody answers. */
  async create(timeoutMs: number): Promise<void> {
    const config = bucketConfig(this.stream, `${this.#subject}>`, this.#options)
    try {
      await this.#ask('STREAM.CREATE', config, timeoutMs)
    } catch (error) {
      if (!(error instanceof BrokerApiError) || error.code !== NAME_IN_USE) throw error
      await this.#compare(config, timeoutMs)
    }
  }

  /** `expected`: revision of the key, 0 when it must not be there. Rejects when the answer is not known. */
  put(key: string, data: Uint8Array, expected: number, timeoutMs: number): Promise<WriteAnswer> {
    return this.#write(key, data, expected, timeoutMs)
  }

  /** Others see it at once, unlike an expiry. */
  remove(key: string, expected: number, timeoutMs: number): Promise<WriteAnswer> {
    return this.#write(key, new Uint8Array(), expected, timeoutMs, 'DEL')
  }

  /** undefined: neither key nor the trace of one, or no bucket. */
  async read(key: string, timeoutMs: number): Promise<StoredLease | undefined> {
    const which = { last_by_subj: this.#subject + key }
    try {
      const { message } = await this.#ask<StoredMessage>('STREAM.MSG.GET', which, timeoutMs)
      const traces = Buffer.from(message.hdrs ?? '', 'base64').includes(`${OPERATION_HEADER}:`)
      return { revision: message.seq, data: traces ? undefined : Buffer.from(message.data ?? '', 'base64') }
    } catch (error) {
      const absent =
        error instanceof BrokerApiError && [MESSAGE_NOT_FOUND, STREAM_NOT_FOUND].includes(error.code)
      if (absent) return undefined
      throw error
    }
  }

  /** Of a message's subject; undefined when it is none of this bucket. */
  keyOf(subject: string): string | undefined {
    return subject.startsWith(this.#subject) ? subject.slice(this.#subject.length) : undefined
  }

  async #write(
    key: string,
    data: Uint8Array,
    expected: number,
    timeoutMs: number,
    operation?: string,
  ): Promise<WriteAnswer> {
    this.#refuseUnconnected()
    const fields = headers()
    fields.set(EXPECTATION_HEADER, String(expected))
    if (operation !== undefined) fields.set(OPERATION_HEADER, operation)
    const { nats } = this.#options.connection
    try {
      const answer = await nats.request(this.#subject + key, data, {
        timeout: Math.max(1, timeoutMs),
        headers: fields,
      })
      return readAnswer(answer.data)
    } catch (error) {
      if (error instanceof NatsError && error.code === NO_RESPONDERS) return { kind: 'missing' }
      throw error
    }
  }

  #ask<Answer>(verb: string, body: object, timeoutMs: number): Promise<Answer> {
    this.#refuseUnconnected()
    return this.api.ask<Answer>(verb, body, undefined, Math.max(1, timeoutMs))
  }

  /** What the client is given meanwhile it would send when it is connected again, long after anybody wants it. */
  #refuseUnconnected(): void {
    if (!this.#options.connection.connected) throw new Error('not connected to the broker')
  }

  async #compare(wanted: Partial<StreamConfig>, timeoutMs: number): Promise<void> {
    const { config } = await this.#ask<{ config: StreamConfig }>('STREAM.INFO', {}, timeoutMs)
    const settings = ['subjects', 'max_age', 'max_msgs_per_subject', 'storage', 'num_replicas'] as const
    const faults = settings
      .filter((setting) => JSON.stringify(config[setting]) !== JSON.stringify(wanted[setting]))
      .map((setting) => `${setting} is ${JSON.stringify(config[setting])}, must be ${wanted[setting]}`)
    if (faults.length > 0) throw new Error(`stream ${this.stream}: ${faults.join('; ')}`)
  }
}

interface StoredMessage {
  message: { seq: number; hdrs?: string; data?: string }
}

function bucketConfig(
  stream: string,
  subject: string,
  { replicas, ttlMs }: LeaseBucketOptions,
): Partial<StreamConfig> {
  return {
    name: stream,
    subjects: [subject],
    retention: RetentionPolicy.Limits,
    storage: StorageType.Memory,
    max_msgs_per_subject: 1,
    max_age: nanos(ttlMs),
    duplicate_window: nanos(ttlMs),
    num_replicas: replicas,
    allow_rollup_hdrs: true,
    // Reads decide what the next write expects: they come from the leader.
    allow_direct: false,
    deny_delete: true,
  }
}

function readAnswer(data: Uint8Array): WriteAnswer {
  const answer = readPubAck(data)
  if (answer.kind === 'stored') return { kind: 'stored', revision: answer.seq }
  if (answer.kind === 'wrong-sequence') return { kind: 'changed' }
  throw new Error(answer.kind === 'unknown' ? answer.error : `the broker answered: ${answer.kind}`)
}
