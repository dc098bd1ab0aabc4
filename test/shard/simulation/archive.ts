/**
 * A JetStream stream as an archive: its messages are found, and removed, by their subjects. It has the disk of a log, and a limit
 * in bytes that refuses.
 */
import type { AppendAnswer, LogMessage, LogState } from '../../../internal/shard/broker.ts'
import { Disk } from './disk.ts'
import { FIRST_SEQ, type Lost, type StreamOptions } from './streams.ts'

export type ArchiveOptions = Omit<StreamOptions, 'sizeOf'> & {
  /** What a message takes of the limit; default: its data. */
  sizeOf?: (data: Uint8Array, msgId: string, subject: string) => number
}

type Stored = LogMessage & { readonly subject: string; readonly size: number }

export class ArchiveStream {
  messages: Stored[] = []
  lastSeq: number
  readonly #options: ArchiveOptions
  readonly #origin: number
  readonly #ids = new Map<string, { seq: number; at: number }>()
  readonly #disk: Disk<Stored>

  constructor(options: ArchiveOptions) {
    this.#options = options
    this.#origin = options.firstSeq ?? FIRST_SEQ
    this.lastSeq = this.#origin - 1
    this.#disk = new Disk(this.lastSeq, !options.syncsLater)
  }

  append(now: number, data: Uint8Array, msgId: string, subject: string): AppendAnswer {
    const { windowMs, maxBytes = -1, sizeOf = ({ length }: Uint8Array) => length } = this.#options
    const known = this.#ids.get(msgId)
    if (known && known.at > now - windowMs) return { kind: 'stored', seq: known.seq, duplicate: true }
    const size = sizeOf(data, msgId, subject)
    if (maxBytes > 0 && this.#bytes + size > maxBytes) return { kind: 'full' }
    const seq = ++this.lastSeq
    this.messages.push({ seq, at: now, data: Buffer.from(data), msgId, subject, size })
    this.#ids.set(msgId, { seq, at: now })
    return { kind: 'stored', seq, duplicate: false }
  }

  state(): LogState {
    const { maxBytes = -1 } = this.#options
    const firstSeq = this.messages[0]?.seq ?? this.lastSeq + 1
    const { lastSeq, messages } = this
    return {
      firstSeq,
      lastSeq,
      messages: messages.length,
      bytes: this.#bytes,
      maxBytes,
      origin: this.#origin,
    }
  }

  list(filter: string): { lastSeq: number; subjects: string[] } {
    const subjects = this.messages.map(({ subject }) => subject).filter((subject) => matches(filter, subject))
    return { lastSeq: this.lastSeq, subjects: [...new Set(subjects)].sort() }
  }

  lastOf(subject: string): LogMessage | undefined {
    return this.messages.findLast((message) => message.subject === subject)
  }

  remove(filter: string): void {
    const gone = this.messages.filter(({ subject }) => matches(filter, subject))
    this.messages = this.messages.filter(({ subject }) => !matches(filter, subject))
    this.#disk.removed(gone)
  }

  /** As a server that is cut off from its peers knows it from now on. */
  view(): ArchiveStream {
    const view = new ArchiveStream(this.#options)
    view.messages = [...this.messages]
    view.lastSeq = this.lastSeq
    return view
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
    this.restart()
    return { from: lastSeq + 1, messages: before.filter(({ seq }) => seq > lastSeq) }
  }

  /** A restarted broker knows only the ids of what it still stores. */
  restart(): void {
    this.#ids.clear()
    for (const { msgId, seq, at } of this.messages) if (msgId !== null) this.#ids.set(msgId, { seq, at })
  }

  get #bytes(): number {
    return this.messages.reduce((sum, { size }) => sum + size, 0)
  }
}

/** `*` stands for one token, `>` at the end for one or more. */
function matches(filter: string, subject: string): boolean {
  const [wanted, tokens] = [filter.split('.'), subject.split('.')]
  const rest = wanted.at(-1) === '>'
  if (rest ? tokens.length < wanted.length : tokens.length !== wanted.length) return false
  const head = rest ? wanted.slice(0, -1) : wanted
  return head.every((token, at) => token === '*' || token === tokens[at])
}
