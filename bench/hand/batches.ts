/**
 * The other half of what is written by hand: one consumer, batches a key in memory, each acknowledged when it was
 * delivered. What waits in memory comes again after a crash, once `ack_wait` has run out.
 */
import { AckPolicy, type JetStreamManager, type JsMsg, type NatsConnection, nanos } from 'nats'
import { Pool } from 'undici'

export interface Batching {
  sinkUrl: string
  idleMs: number
  maxWaitMs: number
  maxItems: number
}

interface Group {
  messages: JsMsg[]
  idle: NodeJS.Timeout
  wait: NodeJS.Timeout
}

const CONNECTIONS = 64
const ATTEMPTS = 3
const BACKOFF_MS = 1_000
const DELIVERY_MS = 10_000
const MAX_ACK_PENDING = 1_000_000
const PULLED = 2_000

/** Batches and delivers what comes into the stream, until the process ends. */
export async function deliverBatches(
  nats: NatsConnection,
  manager: JetStreamManager,
  stream: string,
  batching: Batching,
): Promise<void> {
  await manager.consumers.add(stream, {
    durable_name: 'batches',
    ack_policy: AckPolicy.Explicit,
    // Beyond the longest wait and all attempts, or what waits is handed out twice.
    ack_wait: nanos(batching.maxWaitMs + ATTEMPTS * DELIVERY_MS),
    max_ack_pending: MAX_ACK_PENDING,
  })
  const consumer = await nats.jetstream().consumers.get(stream, 'batches')
  const batches = new Batches(batching)
  for await (const message of await consumer.consume({ max_messages: PULLED })) batches.take(message)
}

class Batches {
  readonly #groups = new Map<string, Group>()
  readonly #batching: Batching
  readonly #pool: Pool
  readonly #path: string

  constructor(batching: Batching) {
    const { origin, pathname } = new URL(batching.sinkUrl)
    this.#batching = batching
    this.#pool = new Pool(origin, { connections: CONNECTIONS })
    this.#path = pathname
  }

  take(message: JsMsg): void {
    const { key } = message.json<{ key: string }>()
    const group = this.#groups.get(key) ?? this.#open(key)
    group.messages.push(message)
    group.idle.refresh()
    if (group.messages.length >= this.#batching.maxItems) this.#flush(key, group)
  }

  #open(key: string): Group {
    const group: Group = {
      messages: [],
      idle: setTimeout(() => this.#flush(key, group), this.#batching.idleMs),
      wait: setTimeout(() => this.#flush(key, group), this.#batching.maxWaitMs),
    }
    this.#groups.set(key, group)
    return group
  }

  #flush(key: string, group: Group): void {
    this.#groups.delete(key)
    clearTimeout(group.idle)
    clearTimeout(group.wait)
    void this.#deliver(key, group.messages)
  }

  /** Gives up after the last attempt: there is no dead letter queue. */
  async #deliver(key: string, messages: readonly JsMsg[]): Promise<void> {
    const items = messages.map((message) => message.string()).join(',')
    const body = `{"key":${JSON.stringify(key)},"items":[${items}]}`
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (await this.#post(body, `${key}:${messages[0]!.seq}`)) {
        for (const message of messages) message.ack()
        return
      }
      await new Promise((resolve) => setTimeout(resolve, BACKOFF_MS * 2 ** attempt))
    }
    for (const message of messages) message.term()
  }

  async #post(body: string, idempotencyKey: string): Promise<boolean> {
    try {
      const { statusCode, body: answer } = await this.#pool.request({
        method: 'POST',
        path: this.#path,
        headers: { 'Content-Type': 'application/json', 'X-Idempotency-Key': idempotencyKey },
        body,
        headersTimeout: DELIVERY_MS,
      })
      await answer.dump()
      return statusCode < 300
    } catch {
      return false
    }
  }
}
