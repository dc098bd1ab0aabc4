/**
 * An archive as the shard may rely on it: sequences, a duplicate window, a limit in bytes that refuses, removals by
 * subject. `simulation-archive.test.ts` holds it against the real server.
 */
import type { AppendAnswer, LogMessage, LogState } from '../../../internal/shard/broker.ts'
import { FIRST_SEQ } from './streams.ts'

export interface ArchiveOptions {
  windowMs: number
  /** Absent: no limit. */
  maxBytes?: number
  /** What a message takes of the limit; default: its data. */
  sizeOf?: (data: Uint8Array, msgId: string, subject: string) => number
  /** The first sequence. */
  firstSeq?: number
}

interface Stored {
  readonly subject: string
  readonly msgId: string
  readonly size: number
  readonly message: LogMessage
}

export class ArchiveStream {
  readonly #options: Required<ArchiveOptions>
  readonly #ids = new Map<string, { seq: number; at: number }>()
  #stored: Stored[] = []
  #lastSeq: number
  #bytes = 0

  constructor(options: ArchiveOptions) {
    this.#options = { maxBytes: -1, sizeOf: (data) => data.length, firstSeq: FIRST_SEQ, ...options }
    this.#lastSeq = this.#options.firstSeq - 1
  }

  append(now: number, data: Uint8Array, msgId: string, subject: string): AppendAnswer {
    const { windowMs, maxBytes, sizeOf } = this.#options
    const known = this.#ids.get(msgId)
    if (known && known.at > now - windowMs) return { kind: 'stored', seq: known.seq, duplicate: true }
    const size = sizeOf(data, msgId, subject)
    if (maxBytes > 0 && this.#bytes + size > maxBytes) return { kind: 'full' }
    const seq = ++this.#lastSeq
    this.#stored.push({ subject, msgId, size, message: { seq, at: now, data: Buffer.from(data), msgId } })
    this.#ids.set(msgId, { seq, at: now })
    this.#bytes += size
    return { kind: 'stored', seq, duplicate: false }
  }

  state(): LogState {
    const { maxBytes, firstSeq: origin } = this.#options
    const lastSeq = this.#lastSeq
    const firstSeq = this.#stored[0]?.message.seq ?? lastSeq + 1
    return { firstSeq, lastSeq, messages: this.#stored.length, bytes: this.#bytes, maxBytes, origin }
  }

  list(filter: string): { lastSeq: number; subjects: string[] } {
    const subjects = new Set(this.#stored.map(({ subject }) => subject))
    return { lastSeq: this.#lastSeq, subjects: [...subjects].filter((subject) => matches(subject, filter)) }
  }

  lastOf(subject: string): LogMessage | undefined {
    return this.#stored.findLast((stored) => stored.subject === subject)?.message
  }

  remove(filter: string): void {
    this.#stored = this.#stored.filter(({ subject }) => !matches(subject, filter))
    this.#bytes = this.#stored.reduce((sum, { size }) => sum + size, 0)
  }

  /** As a server that is cut off from its peers knows it from now on. */
  view(): ArchiveStream {
    const view = new ArchiveStream(this.#options)
    view.#stored = [...this.#stored]
    view.#lastSeq = this.#lastSeq
    view.#bytes = this.#bytes
    return view
  }

  /** A restarted broker knows only the ids of what it still stores. */
  restart(): void {
    const stored = new Set(this.#stored.map(({ msgId }) => msgId))
    for (const id of this.#ids.keys()) if (!stored.has(id)) this.#ids.delete(id)
  }
}

/** By the wildcards of NATS: `*` is one token, `>` the rest, at least one. */
function matches(subject: string, filter: string): boolean {
  const tokens = subject.split('.')
  const wanted = filter.split('.')
  const fits = wanted.at(-1) === '>' ? tokens.length >= wanted.length : tokens.length === wanted.length
  return fits && wanted.every((token, at) => token === '>' || token === '*' || token === tokens[at])
}
