/** Webhooks under load, as a sender does that must not lose any: each is repeated under its id until it is accepted. */
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'

const WRITERS = 8
const GROUPS_A_WRITER = 3
const PAUSE_MS = 25
const REQUEST_MS = 15_000

export class Sender {
  readonly #url: string
  readonly name: string
  readonly #writing: Promise<void>[] = []
  #stopped = false
  /** Message ids that were answered 202. */
  readonly accepted: string[] = []
  /** Attempts that were not answered 202, by message id: a 503 of a busy service, or the error of the connection. */
  readonly refused: { messageId: string; problem: string }[] = []

  /** `url`: of the ingest endpoint. `name`: what its message ids begin with, as nobody else's do. */
  constructor(url: string, name: string) {
    this.#url = url
    this.name = name
  }

  start(): void {
    for (let writer = 0; writer < WRITERS; writer++) this.#writing.push(this.#write(writer))
  }

  /** Resolves when each webhook that was begun is accepted. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#writing)
  }

  /** Webhooks before, while and after `change` runs; resolves when each of them is accepted. */
  async during(change: () => Promise<unknown>): Promise<void> {
    this.start()
    try {
      await this.#further(50)
      await change()
      await this.#further(50)
    } finally {
      await this.stop()
    }
  }

  /** Until so many more were accepted. */
  async #further(count: number): Promise<void> {
    const until = this.accepted.length + count
    await eventually(() => this.accepted.length >= until, { timeoutMs: 60_000, everyMs: 50 })
  }

  /** The `n`th webhook of a customer; resolves when it is accepted. */
  async send(customer: string, n: number): Promise<void> {
    const messageId = `${this.name}-${customer}-${n}`
    for (;;) {
      const problem = await this.#attempt(customer, messageId)
      if (problem === undefined) break
      this.refused.push({ messageId, problem })
      await delay(250)
    }
    this.accepted.push(messageId)
  }

  async #write(writer: number): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      await this.send(`${writer}-${n % GROUPS_A_WRITER}`, n)
      await delay(PAUSE_MS)
    }
  }

  async #attempt(customer: string, messageId: string): Promise<string | undefined> {
    try {
      const answer = await fetch(this.#url, {
        method: 'POST',
        headers: { 'X-Idempotency-Key': messageId },
        body: JSON.stringify({ customer, padding: 'x'.repeat(200) }),
        signal: AbortSignal.timeout(REQUEST_MS),
      })
      const text = await answer.text()
      return answer.status === 202 ? undefined : `${answer.status} ${text}`
    } catch (error) {
      return String((error as Error).cause ?? error)
    }
  }
}
