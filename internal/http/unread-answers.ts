import type { Socket } from 'node:net'
import type { Clock } from '../runtime/clock.ts'
import type { HttpSocket } from './turns.ts'

/**
 * Answers whose clients do not read them (docs/architecture/protocol.md, "Connections"). One look at all open connections,
 * now and then, instead of a timer an answer. Invariant: what an answer holds is free again after `timeoutMs`, or after
 * `stallMs` in which the system took none of it, and a look more.
 */
export interface UnreadOptions {
  readonly clock: Clock
  /** The system may take none of an answer for so long, ms. */
  readonly stallMs: number
  /** The system takes all of an answer within so long, ms. */
  readonly timeoutMs: number
}

/** An answer that was not all taken at the last look. Times are monotonic ms. */
interface Unread {
  readonly answer: object | null | undefined
  /** Of the first look that found it. */
  readonly since: number
  /** Bytes that wait in the socket, and bytes of them that are being written. */
  readonly waiting: number
  readonly writing: number
  /** Of the last look that found a change of these. */
  readonly moved: number
}

/** `writeQueueSize`: falls while a long piece is being written (test/http/node-internals.test.ts). */
type WritingSocket = HttpSocket & { readonly _handle?: { readonly writeQueueSize?: number } | null }

export class UnreadAnswers {
  readonly #options: UnreadOptions
  #found = new Map<Socket, Unread>()

  constructor(options: UnreadOptions) {
    this.#options = options
  }

  /** How often to look, ms. */
  get everyMs(): number {
    return Math.ceil(this.#options.stallMs / 6)
  }

  look(open: Iterable<Socket>): void {
    const { clock, stallMs, timeoutMs } = this.#options
    const now = clock.monotonic()
    const before = this.#found
    this.#found = new Map()
    for (const socket of open) {
      if (socket.writableLength === 0) continue
      const unread = unreadOf(socket, before.get(socket), now)
      // Closed alone, the system would keep what it has taken for minutes.
      if (now - unread.moved >= stallMs || now - unread.since >= timeoutMs) socket.resetAndDestroy()
      else this.#found.set(socket, unread)
    }
  }
}

function unreadOf(socket: WritingSocket, last: Unread | undefined, now: number): Unread {
  const answer = socket._httpMessage
  const waiting = socket.writableLength
  const writing = socket._handle?.writeQueueSize ?? 0
  const isSame = last !== undefined && last.answer === answer
  const isStill = isSame && last.waiting === waiting && last.writing === writing
  return {
    answer,
    since: isSame ? last.since : now,
    waiting,
    writing,
    moved: isStill ? last.moved : now,
  }
}
