import type { Dispatcher } from 'undici'
import type { Clock } from '../runtime/clock.ts'
import type { Connection } from './connection.ts'
import { AttemptDeadlineError } from './failure.ts'

/** Bytes of a response body that are read; what says more loses its connection. */
export const RESPONSE_READ_LIMIT = 65_536
/** Bytes of it that are kept. */
export const RESPONSE_KEPT_LIMIT = 4_096

export interface Answer {
  /** 0: no head of a response arrived, and `error` says why. */
  status: number
  error: Error | null
  /** The first bytes of the body as text, null when it was empty. */
  body: string | null
  /** The response was read to its end: the connection can carry the next exchange. */
  reusable: boolean
}

/**
 * One request and its response on one connection, over within `deadlineMs` of the start, connecting
 * included. Once the head of a response is there its status stands: a body that breaks off, never ends or
 * is too long costs the connection and nothing else (any 2xx response acknowledges: docs/reference/buffers.md,
 * "Deliveries").
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #connection: Connection
  readonly #kept: Buffer[] = []
  readonly #cancelDeadline: () => void
  readonly #resolve: (answer: Answer) => void
  /** Resolves once, never rejects. */
  readonly answer: Promise<Answer>
  #status = 0
  #read = 0
  #settled = false

  constructor(connection: Connection, request: Dispatcher.DispatchOptions, clock: Clock, deadlineMs: number) {
    this.#connection = connection
    const { promise, resolve } = Promise.withResolvers<Answer>()
    this.answer = promise
    this.#resolve = resolve
    this.#cancelDeadline = clock.after(deadlineMs, () => this.abort(this.#late(deadlineMs)))
    connection.dispatch(request, this)
  }

  /** Ends the exchange now. With the head of a response already there its status still stands. */
  abort(error: Error): void {
    this.#settle(error, false)
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    if (status >= 200) this.#status = status
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = RESPONSE_KEPT_LIMIT - this.#read
    // A copy: the chunk is a view of a larger buffer that would stay alive with it.
    if (room > 0) this.#kept.push(Buffer.from(chunk.subarray(0, room)))
    this.#read += chunk.length
    if (this.#read <= RESPONSE_READ_LIMIT) return
    const error = new Error('the body of the response is too long')
    this.#settle(error, false)
    controller.abort(error)
  }

  onResponseEnd(): void {
    this.#settle(null, true)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#settle(error, false)
  }

  #settle(error: Error | null, reusable: boolean): void {
    if (this.#settled) return
    this.#settled = true
    this.#cancelDeadline()
    const status = this.#status
    this.#resolve({ status, error: status === 0 ? error : null, body: this.#text(), reusable })
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
