/** Requests to the JetStream API about one stream; its leader answers them. */
import { messageOf } from '../../runtime/thrown.ts'
import type { Connection } from '../connection.ts'

/** The broker answered with an error; `code` is its `err_code`. */
export class BrokerApiError extends Error {
  override readonly name = 'BrokerApiError'
  readonly code: number

  constructor(message: string, code: number) {
    super(message)
    this.code = code
  }
}

export const MESSAGE_NOT_FOUND = 10037
export const STREAM_NOT_FOUND = 10059

const REQUEST_TIMEOUT_MS = 5_000

export class StreamApi {
  readonly #connection: Connection
  readonly stream: string

  constructor(connection: Connection, stream: string) {
    this.#connection = connection
    this.stream = stream
  }

  /**
   * Asks `$JS.API.<verb>.<stream>[.<tail>]`. Rejects with BrokerApiError for a refusal, and with the
   * client's error when nobody answers within `timeout` ms.
   */
  async ask<Answer>(
    verb: string,
    body: object = {},
    tail?: string,
    timeout = REQUEST_TIMEOUT_MS,
  ): Promise<Answer> {
    const subject = this.#subject(verb, tail)
    const message = await this.#connection.nats
      .request(subject, JSON.stringify(body), { timeout })
      .catch((cause: unknown) => {
        const why = messageOf(cause)
        throw new Error(`stream ${this.stream}: ${verb} was not answered: ${why}`, { cause })
      })
    const { data } = message
    const answer = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString()) as Answer & {
      error?: { err_code?: number; description?: string }
    }
    if (answer.error === undefined) return answer
    const { err_code: code = 0, description = 'refused' } = answer.error
    throw new BrokerApiError(`stream ${this.stream}: ${verb}: ${description} (${code})`, code)
  }

  /** Sends it without waiting for what becomes of it. */
  tell(verb: string, body: object | undefined, tail: string, reply?: string): void {
    const payload = body === undefined ? '' : JSON.stringify(body)
    this.#connection.nats.publish(
      this.#subject(verb, tail),
      payload,
      reply === undefined ? undefined : { reply },
    )
  }

  #subject(verb: string, tail: string | undefined): string {
    return tail === undefined ? `$JS.API.${verb}.${this.stream}` : `$JS.API.${verb}.${this.stream}.${tail}`
  }
}
