/**
 * A JetStream stream as the shard may rely on it: sequences, conditional appends, a duplicate window, a limit
 * in bytes that refuses, purges. `simulation-broker.test.ts` holds it against the real server.
 */
import type { AppendAnswer, LogMessage, LogState } from '../../../internal/shard/broker.ts'
import { Disk } from './disk.ts'

export const FIRST_SEQ = 1_700_000_000_000_000

export interface StreamOptions {
  windowMs: number
  /** Absent: no limit. */
  maxBytes?: number
  /** What a message takes of the limit; default: its data. */
  sizeOf?: (data: Uint8Array, msgId: string | null, expectLastSeq: number | undefined) => number
  /** The first sequence. */
  firstSeq?: number
  /** What is answered need not be on disk yet: only `sync` brings it there. Default: it is. */
  syncsLater?: boolean
}

/** `size`: what it takes of the limit. */
type Stored = LogMessage & { readonly size: number }

/** What a power cut took: everything from this sequence on. */
export interface Lost {
  readonly from: number
  readonly messages: readonly LogMessage[]
}

export class Stream {
  messages: Stored[] = []
  lastSeq: number
  bytes = 0
  readonly #options: Required<StreamOptions>
  readonly #ids = new Map<string, { seq: number; at: number }>()
  readonly #disk: Disk<Stored>

  constructor(options: StreamOptions) {
    const sizeOf = (data: Uint8Array) => data.length
    this.#options = { maxBytes: -1, sizeOf, firstSeq: FIRST_SEQ, syncsLater: false, ...options }
    this.lastSeq = this.#options.firstSeq - 1
    this.#disk = new Disk(this.lastSeq, !this.#options.syncsLater)
  }

  /** `msgId` null: no id, no duplicates. */
  append(now: number, data: Uint8Array, msgId: string | null, expectLastSeq?: number): AppendAnswer {
    const { windowMs, maxBytes, sizeOf } = this.#options
    // Before the id is looked at: a repeat of what was stored has a wrong expectation by then.
    if (expectLastSeq !== undefined && expectLastSeq !== this.lastSeq) return { kind: 'wrong-sequence' }
    const known = msgId === null ? undefined : this.#ids.get(msgId)
    if (known && known.at > now - windowMs) return { kind: 'stored', seq: known.seq, duplicate: true }
    const size = sizeOf(data, msgId, expectLastSeq)
    if (maxBytes > 0 && this.bytes + size > maxBytes) return { kind: 'full' }
    const seq = ++this.lastSeq
    this.messages.push({ seq, at: now, data: Buffer.from(data), msgId, size })
    if (msgId !== null) this.#ids.set(msgId, { seq, at: now })
    this.bytes += size
    return { kind: 'stored', seq, duplicate: false }
  }

  state(): LogState {
    const { maxBytes, firstSeq: origin } = this.#options
    const firstSeq = this.messages[0]?.seq ?? this.lastSeq + 1
    const { lastSeq, bytes } = this
    return { firstSeq, lastSeq, messages: this.messages.length, bytes, maxBytes, origin }
  }

  get(seq: number): LogMessage | undefined {
    const message = this.messages[this.#indexOf(seq)]
    return message?.seq === seq ? message : undefined
  }

  /** At most `count` messages from `seq` on. */
  from(seq: number, count: number): LogMessage[] {
    const first = this.#indexOf(seq)
    return this.messages.slice(first, first + count)
  }

  /** As a server that is cut off from its peers knows it from now on. */
  view(): Stream {
    const view = new Stream(this.#options)
    view.messages = [...this.messages]
    view.lastSeq = this.lastSeq
    view.bytes = this.bytes
    return view
  }

  purgeBelow(seq: number): void {
    const gone = this.messages.splice(0, Math.min(this.#indexOf(seq), this.messages.length - 1))
    for (const { size } of gone) this.bytes -= size
    this.#disk.removed(gone)
  }

  sync(): void {
    this.#disk.sync(this.lastSeq)
  }

  /** All servers lose power, and start again with what is on their disks. */
  cutPower(random: () => number): Lost {
    const before = this.messages
    const { messages, lastSeq } = this.#disk.cut(random, before, this.lastSeq)
    this.messages = messages
    this.lastSeq = lastSeq
    this.bytes = messages.reduce((sum, { size }) => sum + size, 0)
    for (const [id, { seq }] of this.#ids) if (seq > lastSeq) this.#ids.delete(id)
    this.restart()
    return { from: lastSeq + 1, messages: before.filter(({ seq }) => seq > lastSeq) }
  }

  /** A restarted broker knows only the ids of what it still stores. */
  restart(): void {
    const first = this.messages[0]?.seq ?? this.lastSeq + 1
    for (const [id, { seq }] of this.#ids) if (seq < first) this.#ids.delete(id)
  }

  /** It stood still for longer than it knows an id. */
  forget(msgId: string): void {
    this.#ids.delete(msgId)
  }

  /** Of the first message at or above `seq`: only purges leave gaps, and only at the beginning. */
  #indexOf(seq: number): number {
    const first = this.messages[0]?.seq ?? seq
    return Math.min(Math.max(0, seq - first), this.messages.length)
  }
}
