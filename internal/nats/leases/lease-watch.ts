/**
 * Every change of the bucket in the order of its stream, from what stands now on. Over a consumer of its own
 * that is thrown away and begun anew whenever anything is odd: a gap in its numbers, a reconnect, or a stored
 * renewal that it does not bring.
 *
 * Invariant: between `began` and the next `lost` no change is left out.
 */
import { createInbox, type Msg, nuid, type Subscription } from 'nats'
import type { Clock } from '../../runtime/clock.ts'
import type { Connection } from '../connection.ts'
import { readDelivery } from '../log/delivered.ts'
import { BrokerApiError, STREAM_NOT_FOUND } from '../streams/stream-api.ts'
import { type LeaseBucket, OPERATION_HEADER, type StoredLease } from './lease-bucket.ts'
import type { LeaseTimes } from './lease-times.ts'

export interface LeaseEvents {
  /** The bucket exists; what stands in it comes now, unless it came already. `at`: monotonic ms. */
  began(at: number): void
  lost(): void
  changed(key: string, stored: StoredLease): void
}

export interface LeaseWatchOptions {
  connection: Connection
  bucket: LeaseBucket
  clock: Clock
  times: LeaseTimes
  events: LeaseEvents
  onProblem: (what: string, error: unknown) => void
}

const NANOS_PER_MS = 1_000_000

export class LeaseWatch {
  readonly #options: LeaseWatchOptions
  readonly #unwatch: (() => void)[]
  #consumer = ''
  #consumerSeq = 0
  #subscription: Subscription | undefined
  #began = false
  #stopped = false
  #failing = false
  #cancelRetry: (() => void) | undefined
  /** Since when something that was stored is awaited, monotonic ms. */
  #awaitedSince: number | undefined
  #heardAt = Number.NEGATIVE_INFINITY

  constructor(options: LeaseWatchOptions) {
    this.#options = options
    this.#unwatch = [
      options.connection.onReconnect(() => void this.#open()),
      options.connection.onDisconnect(() => this.#abandon()),
    ]
  }

  start(): void {
    void this.#open()
  }

  /** A message whose write began at `begun`, monotonic ms, was stored: the watch brings it, or it is broken. */
  expect(begun: number): void {
    if (this.#heardAt >= begun) return
    const now = this.#options.clock.monotonic()
    this.#awaitedSince ??= now
    if (this.#began && now - this.#awaitedSince > this.#options.times.silenceMs)
      this.#restart('what was stored did not come')
  }

  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    for (const unwatch of this.#unwatch) unwatch()
    this.#abandon()
  }

  /** Leaves the present consumer; the broker would forget it anyway, later. */
  #abandon(): void {
    const { connection, bucket, events } = this.#options
    this.#cancelRetry?.()
    if (this.#subscription && !connection.nats.isClosed()) this.#subscription.unsubscribe()
    if (this.#consumer !== '' && connection.connected)
      bucket.api.tell('CONSUMER.DELETE', undefined, this.#consumer)
    this.#subscription = undefined
    this.#consumer = ''
    this.#awaitedSince = undefined
    const began = this.#began
    this.#began = false
    if (began) events.lost()
  }

  #restart(why: string): void {
    this.#options.onProblem('the watch of the leases begins anew', new Error(why))
    void this.#open()
  }

  async #open(): Promise<void> {
    this.#abandon()
    if (this.#stopped || !this.#options.connection.connected) return
    const name = nuid.next()
    this.#consumer = name
    this.#consumerSeq = 0
    try {
      await this.#create(name, this.#subscribe())
    } catch (error) {
      if (this.#consumer === name) this.#retry(error)
      return
    }
    if (this.#consumer !== name) return
    this.#failing = false
    this.#began = true
    this.#awaitedSince = undefined
    // The moment of the answer: the bucket is older than that for certain.
    this.#options.events.began(this.#options.clock.monotonic())
  }

  #retry(error: unknown): void {
    const { clock, times, onProblem } = this.#options
    if (!this.#failing) onProblem('the leases cannot be watched', error)
    this.#failing = true
    this.#abandon()
    this.#cancelRetry = clock.after(times.heartbeatMs / 4, () => void this.#open())
  }

  /** A subscription for each consumer: what an earlier one still sends arrives nowhere. */
  #subscribe(): string {
    const inbox = createInbox()
    this.#subscription = this.#options.connection.nats.subscribe(inbox, {
      callback: (error, message) => {
        if (error) this.#restart(error.message)
        else this.#received(message)
      },
    })
    return inbox
  }

  async #create(name: string, inbox: string): Promise<void> {
    const { bucket, times } = this.#options
    const config = {
      name,
      deliver_subject: inbox,
      deliver_policy: 'all',
      ack_policy: 'none',
      replay_policy: 'instant',
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: times.ttlMs * NANOS_PER_MS,
    }
    const request = { stream_name: bucket.stream, config }
    const ask = () => bucket.api.ask('CONSUMER.CREATE', request, name, times.writeMs)
    try {
      await ask()
    } catch (error) {
      if (!(error instanceof BrokerApiError) || error.code !== STREAM_NOT_FOUND) throw error
      await bucket.create(times.writeMs)
      await ask()
    }
  }

  #received(message: Msg): void {
    const { bucket, events, onProblem } = this.#options
    const delivery = readDelivery(message.reply ?? '', bucket.stream, this.#consumer)
    if (delivery?.consumerSeq !== this.#consumerSeq + 1) {
      this.#restart(`a gap after message ${this.#consumerSeq}`)
      return
    }
    this.#consumerSeq++
    this.#heardAt = this.#options.clock.monotonic()
    this.#awaitedSince = undefined
    const key = bucket.keyOf(message.subject)
    if (key === undefined) return
    const deleted = message.headers?.has(OPERATION_HEADER) === true
    try {
      events.changed(key, { revision: delivery.seq, data: deleted ? undefined : message.data })
    } catch (error) {
      // Thrown further, it would end the client's reading of its socket.
      onProblem(`lease ${key} was not taken in`, error)
    }
  }
}
