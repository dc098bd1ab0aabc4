/**
 * Appends by core publish: one reply subscription for all of them, the PubAcks matched in a table here, one
 * timer for all time-outs. Measured against `js.publish`: 7 µs an append instead of 40
 * (docs/architecture/protocol.md, "Appends").
 *
 * Invariant: an append is answered exactly once, and `stored` only on a PubAck.
 */
import { createInbox, type Msg, type Subscription } from 'nats'
import type { Clock } from '../../runtime/clock.ts'
import type { AppendAnswer } from '../../shard/broker.ts'
import type { Connection } from '../connection.ts'
import { appendHeaders } from './publish-headers.ts'

/** Precision of time-outs, ms. */
const SWEEP_EVERY_MS = 50

interface Pending {
  readonly deadline: number
  readonly settle: (answer: AppendAnswer) => void
}

export interface AppendRequest {
  subject: string
  data: Uint8Array
  msgId: string
  /** The append is refused unless the stream's last sequence is this one. */
  expectLastSeq?: number | undefined
  timeoutMs: number
}

export class Appender {
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #inbox: string
  readonly #subscription: Subscription
  readonly #unwatch: () => void
  readonly #pending = new Map<string, Pending>()
  #next = 0
  #cancelSweep: (() => void) | undefined

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection
    this.#clock = clock
    this.#inbox = `${createInbox()}.`
    this.#subscription = connection.nats.subscribe(`${this.#inbox}*`, {
      callback: (error, message) => {
        // Thrown here, an error would end the client's reading of its socket.
        if (error) connection.warn(`answers to appends cannot be received: ${error.message}`)
        else this.#answered(message)
      },
    })
    this.#unwatch = connection.onDisconnect(() => this.#failAll('disconnected'))
  }

  /** One attempt; never rejects. Without a connection the answer is `unknown` at once. */
  append(request: AppendRequest): Promise<AppendAnswer> {
    if (!this.#connection.connected) return Promise.resolve({ kind: 'unknown', error: 'not connected' })
    return new Promise((settle) => {
      const token = (this.#next++).toString(36)
      const { subject, data, msgId, expectLastSeq, timeoutMs } = request
      const headers = appendHeaders(msgId, expectLastSeq)
      try {
        this.#connection.nats.publish(subject, data, { headers, reply: this.#inbox + token })
      } catch (error) {
        settle({ kind: 'unknown', error: String(error) })
        return
      }
      this.#pending.set(token, { deadline: this.#clock.monotonic() + timeoutMs, settle })
      this.#cancelSweep ??= this.#clock.after(SWEEP_EVERY_MS, () => this.#sweep())
    })
  }

  /** Answers what is pending with `unknown`. */
  close(): void {
    this.#unwatch()
    if (!this.#connection.nats.isClosed()) this.#subscription.unsubscribe()
    this.#failAll('closed')
  }

  #answered(message: Msg): void {
    const token = message.subject.slice(this.#inbox.length)
    const pending = this.#pending.get(token)
    // Answers after the time-out find nobody: the caller has repeated under the same id.
    if (pending === undefined) return
    this.#pending.delete(token)
    pending.settle(readPubAck(message.data))
  }

  #sweep(): void {
    this.#cancelSweep = undefined
    const now = this.#clock.monotonic()
    for (const [token, pending] of this.#pending) {
      if (pending.deadline > now) continue
      this.#pending.delete(token)
      pending.settle({ kind: 'unknown', error: 'no answer in time' })
    }
    if (this.#pending.size > 0) this.#cancelSweep = this.#clock.after(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** The answers went to a connection that is gone; what they said will be learnt by repeating. */
  #failAll(error: string): void {
    this.#cancelSweep?.()
    this.#cancelSweep = undefined
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { settle } of pending) settle({ kind: 'unknown', error })
  }
}

interface PubAck {
  seq?: number
  duplicate?: boolean
  error?: { err_code?: number; description?: string }
}

/** What an answer of the broker says; an empty one is its "no responders" (503). */
export function readPubAck(data: Uint8Array): AppendAnswer {
  if (data.length === 0) return { kind: 'unknown', error: 'no responders: the stream is not there' }
  let ack: PubAck
  try {
    ack = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString()) as PubAck
  } catch {
    return { kind: 'unknown', error: 'an answer that is no PubAck' }
  }
  if (ack.error !== undefined) return refusal(ack.error.err_code ?? 0, ack.error.description ?? '')
  if (typeof ack.seq !== 'number' || ack.seq <= 0)
    return { kind: 'unknown', error: 'a PubAck without sequence' }
  return { kind: 'stored', seq: ack.seq, duplicate: ack.duplicate === true }
}

const WRONG_LAST_SEQUENCE = 10071
const WRONG_LAST_SEQUENCE_CONSTANT = 10164
const DUPLICATE_IN_PROCESS = 10158
const INSUFFICIENT_STORAGE = 10047
const INSUFFICIENT_RESOURCES = 10023
const STORE_FAILED = 10077

function refusal(code: number, description: string): AppendAnswer {
  switch (code) {
    case WRONG_LAST_SEQUENCE:
    case WRONG_LAST_SEQUENCE_CONSTANT:
      return { kind: 'wrong-sequence' }
    case DUPLICATE_IN_PROCESS:
      return { kind: 'in-process' }
    case INSUFFICIENT_STORAGE:
    case INSUFFICIENT_RESOURCES:
      return { kind: 'full' }
    case STORE_FAILED:
      // Also an I/O error comes under this code, and after one nobody knows.
      if (description.includes('maximum bytes')) return { kind: 'full' }
      break
  }
  return { kind: 'unknown', error: `${code} ${description}` }
}
