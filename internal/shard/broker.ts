/**
 * What a shard needs of the broker: two logs and an archive a shard, and plain messages between nodes
 * (docs/architecture/protocol.md, "Logs"). The adapter is `internal/nats`; the simulator brings its own.
 */

export interface LogMessage {
  /** Sequence in its stream; never repeats, never above 2^53. */
  readonly seq: number
  /** The broker's timestamp, Unix ms. */
  readonly at: number
  readonly data: Uint8Array
  /** `Nats-Msg-Id`, null when the message has none. */
  readonly msgId: string | null
}

export type AppendAnswer =
  /** Durable under `seq`. `duplicate`: an earlier attempt with this id was stored. */
  | { kind: 'stored'; seq: number; duplicate: boolean }
  /** The expected last sequence did not match (10071): nothing was stored. */
  | { kind: 'wrong-sequence' }
  /** The same id is being stored right now (10158): wait and repeat. */
  | { kind: 'in-process' }
  /** `max_bytes` reached, nothing was stored. */
  | { kind: 'full' }
  /** No answer, no responders, or any other refusal: stored or not, nobody knows. */
  | { kind: 'unknown'; error: string }

export interface LogState {
  /** First sequence still stored; lastSeq + 1 when empty. */
  firstSeq: number
  lastSeq: number
  messages: number
  bytes: number
  maxBytes: number
  /** The sequence that it began with when it was made; absent when that is not known. */
  origin?: number
  /** When it was asked, by the broker's clock, Unix ms; absent when that is not known. */
  at?: number
}

export interface Reading {
  /** Stops for good; no call of the handler begins afterwards. */
  stop(): Promise<void>
}

export interface Log {
  /** ONE attempt; the caller repeats under the same id. Never rejects. */
  append(
    data: Uint8Array,
    options: { subject?: string; msgId: string; expectLastSeq?: number; timeoutMs: number },
  ): Promise<AppendAnswer>
  /** State from the stream's leader. */
  state(): Promise<LogState>
  /** One stored message read from the leader; undefined when it is gone. */
  get(seq: number): Promise<LogMessage | undefined>
  /** The last message of the stream, from the leader. */
  last(): Promise<LogMessage | undefined>
  /**
   * Every message from `from` on, in order, without a gap but for purged ones; batches as they arrive. The
   * handler may return a promise: no further batch is handed over before it settles (back-pressure). Survives
   * reconnects and a deleted consumer by itself, from its own cursor; `onError` reports what it survived.
   */
  follow(
    from: number,
    handler: (messages: LogMessage[]) => void | Promise<void>,
    onError: (error: Error) => void,
  ): Reading
  /** Messages with from <= seq <= to, in order; ends after `to` (or the last message below it). */
  range(from: number, to: number): AsyncIterable<LogMessage>
  /** Removes what is below `seq`; never the last message of the stream. */
  purgeBelow(seq: number): Promise<void>
}

/**
 * What a shard keeps under subjects: a message is found, and removed, by its own. Subjects and filters are those below the
 * archive's root, as `probe` and `snapshot.>`. All answers come from the stream's leader.
 */
export interface Archive {
  /** As that of a log. */
  append(
    data: Uint8Array,
    options: { subject: string; msgId: string; timeoutMs: number },
  ): Promise<AppendAnswer>
  state(): Promise<LogState>
  /** The subjects that hold a message, and the stream's last sequence when they did. Rejects when they change meanwhile. */
  list(filter: string): Promise<{ lastSeq: number; subjects: string[] }>
  /** The last message under a subject; undefined: there is none. */
  lastOf(subject: string): Promise<LogMessage | undefined>
  /** Removes all messages under the subjects; sequences go on. */
  remove(filter: string): Promise<void>
}

export interface Broker {
  inbox(shard: number): Log
  journal(shard: number): Log
  archive(shard: number): Archive
  /** Core message, at most once. */
  publish(subject: string, data: Uint8Array, reply?: string): void
  /**
   * The same to a subject that nobody but one process subscribes to: where it is this one, it is handed over here, after the
   * running turn, and does not pass the broker.
   */
  tell(subject: string, data: Uint8Array): void
  /** The returned function ends the subscription. `reply` is the subject to answer to, when the sender waits. */
  subscribe(subject: string, handler: (data: Uint8Array, reply: string | undefined) => void): () => void
  /** After each reconnect to a server. */
  onReconnect(listener: () => void): () => void
}
