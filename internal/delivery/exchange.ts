import type { Dispatcher } from 'undici'
import type { Clock } from '../runtime/clock.ts'
import type { Connection } from './connection.ts'
import { AttemptDeadlineError, TooManyHeadsError } from './failure.ts'

/** Bytes of a response body that are read; what says more loses its connection. */
export const RESPONSE_READ_LIMIT = 65_536
/** Bytes of it that are kept. */
export const RESPONSE_KEPT_LIMIT = 4_096

/** Longest wait between the head of a response and the answer, for the bytes that are kept, ms. */
export const BODY_WAIT_MS = 1_000
/** Heads with a status below 200 before the final one. A destination that never stops would cost computing time. */
const INFORMATIONAL_LIMIT = 100

export interface Answer {
  /** 0: no head of a response arrived, and `error` says why. */
  status: number
  error: Error | null
  /** The first bytes of the body as text, null when none arrived in time or nobody reads them. */
  body: string | null
}

export interface ExchangeOptions {
  clock: Clock
  /** For the request and the whole response, connecting included, ms. */
  deadlineMs: number
  /** The answer has the body of a 2xx, too. */
  readsBody: boolean
}

/**
 * One request and its response on one connection, over within `deadlineMs` of the start. Heads with a status below 200
 * are passed over. Once the final head is there its status stands: a body that breaks off, never ends or is too long
 * costs the connection and nothing else (any 2xx response acknowledges: docs/reference/buffers.md, "Deliveries").
 *
 * So `answer` comes before `over`: at the head of a 2xx, or up to `BODY_WAIT_MS` later where the body is kept.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #readsBody: boolean
  readonly #kept: Buffer[] = []
  readonly #cancelDeadline: () => void
  #cancelBodyWait = () => {}
  readonly #answer = Promise.withResolvers<Answer>()
  readonly #over = Promise.withResolvers<boolean>()
  #informational = 0
  #status = 0
  #read = 0
  #settled = false

  constructor(
    connection: Connection,
    request: Dispatcher.DispatchOptions,
    { clock, deadlineMs, readsBody }: ExchangeOptions,
  ) {
    this.#connection = connection
    this.#clock = clock
    this.#readsBody = readsBody
    this.#cancelDeadline = clock.after(deadlineMs, () => this.abort(this.#late(deadlineMs)))
    connection.dispatch(request, this)
  }

  /** Resolves once, never rejects, and not after `over`. */
  get answer(): Promise<Answer> {
    return this.#answer.promise
  }

  /** Resolves once, never rejects: whether the response was read to its end, so that its connection can carry another. */
  get over(): Promise<boolean> {
    return this.#over.promise
  }

  /** Ends the exchange now. With the head of a response already there its status still stands. */
  abort(error: Error): void {
    this.#settle(error, false)
  }

  onRequestStart(): void {}

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) {
      this.#informational++
      if (this.#informational > INFORMATIONAL_LIMIT) this.#cut(controller, new TooManyHeadsError())
      return
    }
    this.#status = status
    if (this.#keepsBody) this.#cancelBodyWait = this.#clock.after(BODY_WAIT_MS, () => this.#answerWith(null))
    else this.#answerWith(null)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = RESPONSE_KEPT_LIMIT - this.#read
    // A copy: the chunk is a view of a larger buffer that would stay alive with it.
    if (room > 0 && this.#keepsBody) this.#kept.push(Buffer.from(chunk.subarray(0, room)))
    this.#read += chunk.length
    if (this.#read > RESPONSE_READ_LIMIT)
      this.#cut(controller, new Error('the body of the response is too long'))
  }

  onResponseEnd(): void {
    this.#settle(null, true)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#settle(error, false)
  }

  get #keepsBody(): boolean {
    return this.#readsBody || this.#status >= 300
  }

  #cut(controller: Dispatcher.DispatchController, error: Error): void {
    this.#settle(error, false)
    controller.abort(error)
  }

  #settle(error: Error | null, reusable: boolean): void {
    if (this.#settled) return
    this.#settled = true
    this.#cancelDeadline()
    this.#cancelBodyWait()
    this.#over.resolve(reusable)
    this.#answerWith(error)
  }

  #answerWith(error: Error | null): void {
    const status = this.#status
    this.#answer.resolve({ status, error: status === 0 ? error : null, body: this.#text() })
  }

  /** `stream` drops a character that the limit cuts in two. */
  #text(): string | null {
    if (this.#kept.length === 0) return null
    return new TextDecoder().decode(Buffer.concat(this.#kept), { stream: true })
  }

  #late(deadlineMs: number): AttemptDeadlineError {
    const what = this.#connection.connected ? 'no response' : 'no connection'
    return new AttemptDeadlineError(`${what} within ${deadlineMs} ms`)
  }
}
