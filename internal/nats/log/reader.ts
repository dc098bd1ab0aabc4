/**
 * Reads a stream in order from a cursor of our own. The broker's consumer is throw-away: in memory, without
 * acknowledgements, replaced by another one from the cursor whenever anything is odd (a gap in its numbers,
 * silence, deletion, a reconnect). Pulled, not pushed, so that what is under way is bounded in bytes.
 *
 * Invariant: the handler gets each sequence at most once and in order, and one call at a time.
 */

import { createInbox, type Msg, nuid, type Subscription } from 'nats'
import type { Clock } from '../../runtime/clock.ts'
import { asError, messageOf } from '../../runtime/thrown.ts'
import type { LogMessage, Reading } from '../../shard/broker.ts'
import type { Connection } from '../connection.ts'
import type { StreamApi } from '../streams/stream-api.ts'
import { msgIdOfMessage, readDelivery, sizeOf } from './delivered.ts'

/** One pull; the next one follows when it is done and the handler has not fallen behind. All of one may come in one turn of the event loop. */
const PULL_MESSAGES = 4_096
const PULL_BYTES = 1024 * 1024
const PULL_EXPIRES_MS = 30_000
/** The broker says this often that a pull still stands; after two and a half of silence it does not. */
const HEARTBEAT_MS = 2_000
const SILENCE_MS = 5_000
/** The broker forgets a consumer that nobody pulls from after this. */
const INACTIVE_MS = 60_000
/** A stream between two leaders answers nobody; better to ask again soon. */
const CREATE_TIMEOUT_MS = 1_500
const LEAST_BACK_OFF_MS = 50
const MOST_BACK_OFF_MS = 2_000
const NANOS_PER_MS = 1_000_000

export interface ReaderOptions {
  connection: Connection
  clock: Clock
  api: StreamApi
  stream: string
  from: number
  handler: (messages: LogMessage[]) => void | Promise<void>
  /** What was survived; and, as the last one, what the handler threw: the reading has stopped then. */
  onError: (error: Error) => void
}

export class Reader implements Reading {
  readonly #options: ReaderOptions
  readonly #unwatch: (() => void)[]
  #next: number
  #stopped = false
  #backOffMs = LEAST_BACK_OFF_MS
  #cancelRetry: (() => void) | undefined
  #cancelWatch: (() => void) | undefined

  #subscription: Subscription | undefined
  #inbox = ''
  #consumer = ''
  #consumerSeq = 0

  #pull = 0
  #pulling = false
  #messagesLeft = 0
  #bytesLeft = 0
  #oversized = false
  #heardAt = 0

  #queue: LogMessage[] = []
  #unhandledBytes = 0
  #handling = false
  #scheduled = false

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#next = Math.max(1, options.from)
    this.#unwatch = [
      options.connection.onReconnect(() => this.#restart('reconnected')),
      options.connection.onDisconnect(() => this.#abandon()),
    ]
    void this.#open()
    this.#watchSilence()
  }

  stop(): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    this.#stopped = true
    for (const unwatch of this.#unwatch) unwatch()
    this.#cancelRetry?.()
    this.#cancelWatch?.()
    this.#queue = []
    this.#abandon()
    return Promise.resolve()
  }

  /** Leaves the present consumer; the broker would forget it anyway, later. */
  #abandon(): void {
    const { connection, api } = this.#options
    this.#pulling = false
    if (this.#subscription && !connection.nats.isClosed()) this.#subscription.unsubscribe()
    if (this.#consumer !== '' && connection.connected) api.tell('CONSUMER.DELETE', undefined, this.#consumer)
    this.#subscription = undefined
    this.#consumer = ''
  }

  #restart(why: string): void {
    if (this.#stopped) return
    this.#abandon()
    this.#options.onError(new Error(`reading of ${this.#options.stream} began anew at ${this.#next}: ${why}`))
    this.#cancelRetry?.()
    this.#cancelRetry = this.#options.clock.after(this.#backOffMs, () => void this.#open())
    this.#backOffMs = Math.min(this.#backOffMs * 2, MOST_BACK_OFF_MS)
  }

  async #open(): Promise<void> {
    this.#cancelRetry = undefined
    if (this.#stopped || !this.#options.connection.connected) return
    const name = nuid.next()
    this.#consumer = name
    this.#consumerSeq = 0
    try {
      this.#subscribe()
      await this.#options.api.ask('CONSUMER.CREATE', this.#consumerRequest(name), name, CREATE_TIMEOUT_MS)
    } catch (error) {
      if (this.#consumer === name) this.#restart(messageOf(error))
      return
    }
    if (this.#consumer === name) this.#pullMore()
  }

  #consumerRequest(name: string): object {
    return {
      stream_name: this.#options.stream,
      config: {
        name,
        deliver_policy: 'by_start_sequence',
        opt_start_seq: this.#next,
        ack_policy: 'none',
        replay_policy: 'instant',
        mem_storage: true,
        num_replicas: 1,
        inactive_threshold: INACTIVE_MS * NANOS_PER_MS,
      },
    }
  }

  /** A subscription for each consumer: what an earlier one still sends arrives nowhere. */
  #subscribe(): void {
    this.#inbox = createInbox()
    this.#subscription = this.#options.connection.nats.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error) this.#restart(error.message)
        else this.#received(message)
      },
    })
  }

  #pullMore(): void {
    if (this.#stopped || this.#pulling || this.#consumer === '' || this.#unhandledBytes >= PULL_BYTES) return
    this.#pulling = true
    this.#pull++
    this.#messagesLeft = this.#oversized ? 1 : PULL_MESSAGES
    this.#bytesLeft = this.#oversized ? Number.POSITIVE_INFINITY : PULL_BYTES
    this.#heardAt = this.#options.clock.monotonic()
    const request = {
      batch: this.#messagesLeft,
      ...(!this.#oversized && { max_bytes: PULL_BYTES }),
      expires: PULL_EXPIRES_MS * NANOS_PER_MS,
      idle_heartbeat: HEARTBEAT_MS * NANOS_PER_MS,
    }
    this.#options.api.tell('CONSUMER.MSG.NEXT', request, this.#consumer, `${this.#inbox}.${this.#pull}`)
  }

  #received(message: Msg): void {
    this.#heardAt = this.#options.clock.monotonic()
    const { reply = '' } = message
    if (reply === '') {
      this.#status(message)
      return
    }
    const delivery = readDelivery(reply, this.#options.stream, this.#consumer)
    if (delivery === undefined || delivery.consumerSeq !== this.#consumerSeq + 1) {
      this.#restart(`a gap after message ${this.#consumerSeq} of the consumer`)
      return
    }
    this.#consumerSeq = delivery.consumerSeq
    this.#backOffMs = LEAST_BACK_OFF_MS
    // A broker that lost its tail counts again below our cursor: those positions are spoken for.
    if (delivery.seq >= this.#next) this.#take(message, reply, delivery.seq, delivery.at)
    this.#account(message)
  }

  #take(message: Msg, reply: string, seq: number, at: number): void {
    // A copy: the client's bytes are a view that would keep a whole read of the socket in memory.
    // Not from Node's pool: a small pack that stays would hold 8 KB of other buffers.
    const data = Buffer.allocUnsafeSlow(message.data.length)
    data.set(message.data)
    this.#queue.push({ seq, at, data, msgId: msgIdOfMessage(message, reply) })
    this.#next = seq + 1
    this.#unhandledBytes += data.length
    if (this.#scheduled || this.#handling) return
    this.#scheduled = true
    // After the rest of what the socket brought: one call for all of it.
    queueMicrotask(() => {
      this.#scheduled = false
      void this.#handOver()
    })
  }

  #account(message: Msg): void {
    this.#messagesLeft--
    this.#bytesLeft -= sizeOf(message)
    if (this.#messagesLeft > 0 && this.#bytesLeft > 0) return
    this.#oversized = false
    this.#pulling = false
    this.#pullMore()
  }

  #status(message: Msg): void {
    const code = message.headers?.code ?? 0
    if (code === 100 || message.subject !== `${this.#inbox}.${this.#pull}`) return
    const text = message.headers?.description ?? ''
    const exceeded = code === 409 && text.includes('MaxBytes')
    if (code !== 408 && code !== 404 && !exceeded && !(code === 409 && text.includes('Batch Completed'))) {
      this.#restart(`${code} ${text}`.trim())
      return
    }
    // A message larger than a whole pull is fetched by itself.
    this.#oversized = exceeded && this.#bytesLeft === PULL_BYTES
    this.#pulling = false
    this.#pullMore()
  }

  async #handOver(): Promise<void> {
    if (this.#handling) return
    this.#handling = true
    while (this.#queue.length > 0 && !this.#stopped) {
      const batch = this.#queue
      this.#queue = []
      try {
        const handled = this.#options.handler(batch)
        if (handled) await handled
      } catch (cause) {
        await this.stop()
        this.#options.onError(asError(cause))
      }
      for (const { data } of batch) this.#unhandledBytes -= data.length
      this.#pullMore()
    }
    this.#handling = false
  }

  #watchSilence(): void {
    const { clock } = this.#options
    this.#cancelWatch = clock.after(HEARTBEAT_MS, () => {
      if (this.#pulling && clock.monotonic() - this.#heardAt > SILENCE_MS)
        this.#restart('the broker fell silent')
      this.#watchSilence()
    })
  }
}
