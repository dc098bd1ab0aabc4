/** A JetStream stream as the shard may rely on it: sequences, conditional appends, a duplicate window, purges. */
import type { AppendAnswer, LogMessage, LogState } from '../../../internal/shard/broker.ts'

export const FIRST_SEQ = 1_700_000_000_000_000

export class Stream {
  messages: LogMessage[] = []
  lastSeq = FIRST_SEQ - 1
  readonly #windowMs: number
  readonly #ids = new Map<string, { seq: number; at: number }>()

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  append(now: number, data: Uint8Array, msgId: string, expectLastSeq?: number): AppendAnswer {
    const known = this.#ids.get(msgId)
    if (known && known.at > now - this.#windowMs) return { kind: 'stored', seq: known.seq, duplicate: true }
    if (expectLastSeq !== undefined && expectLastSeq !== this.lastSeq) return { kind: 'wrong-sequence' }
    const seq = ++this.lastSeq
    this.messages.push({ seq, at: now, data: Buffer.from(data), msgId })
    this.#ids.set(msgId, { seq, at: now })
    return { kind: 'stored', seq, duplicate: false }
  }

  state(): LogState {
    const bytes = this.messages.reduce((sum, { data }) => sum + data.length, 0)
    const firstSeq = this.messages[0]?.seq ?? this.lastSeq + 1
    return { firstSeq, lastSeq: this.lastSeq, messages: this.messages.length, bytes, maxBytes: -1 }
  }

  get(seq: number): LogMessage | undefined {
    return this.messages.find((message) => message.seq === seq)
  }

  purgeBelow(seq: number): void {
    const kept = this.messages.filter((message) => message.seq >= seq)
    this.messages = kept.length > 0 ? kept : this.messages.slice(-1)
  }

  /** A restarted broker knows only the ids of what it still stores. */
  forgetPurged(): void {
    const first = this.messages[0]?.seq ?? this.lastSeq
    for (const [id, { seq }] of this.#ids) if (seq < first) this.#ids.delete(id)
  }
}
