import type { Dispatcher } from 'undici'
import { withoutSecrets } from '../domain/echoed-secrets.ts'
import type { BufferRecord, DeliveryConfig } from '../domain/model.ts'
import type { Clock } from '../runtime/clock.ts'
import { SharedBudget, type Taker } from '../runtime/shared-budget.ts'
import type { Attempt, AttemptResult, SendOptions } from './attempt.ts'
import { ATTEMPT_PLACES, BODY_BYTES } from './attempt-places.ts'
import type { Connection } from './connection.ts'
import { Exchange } from './exchange.ts'
import { ClosingError, lacksSocket } from './failure.ts'
import { BlockedDestinationError, Guard, type GuardOptions } from './guard.ts'
import { OriginPool } from './origin-pool.ts'
import { type PlaceLimits, Places } from './places.ts'
import type { DeliveryTelemetry } from './ports.ts'
import { type QueueLimits, type Turn, TurnQueue } from './queue.ts'
import { deliveryRequest } from './request.ts'
import { failed, resultOf, unsent } from './result.ts'

export interface DeliveryClientOptions extends GuardOptions {
  clock: Clock
  telemetry: DeliveryTelemetry
  /** Of the service, for the user agent. */
  version: string
  /** Each origin's; a place is a connection. Default: 64 connections, 10,000 waiting attempts, 64 MB of waiting bodies. */
  limits?: Partial<QueueLimits>
  /** All bodies that run or wait; a customer has a share. Default `BODY_BYTES`. */
  bodyBytes?: number
  /** Of the process: attempts at once, and the same number of idle connections. Default `ATTEMPT_PLACES`. */
  places?: PlaceLimits
  /** For a whole attempt. Default `ATTEMPT_DEADLINE_MS`. */
  deadlineMs?: number
}

/** How much is going on, over all origins. */
export interface DeliveryGauges {
  origins: number
  running: number
  waiting: number
  idleConnections: number
}

/** Of a whole attempt, connecting included, ms (docs/reference/api.md, "Limits"). */
export const ATTEMPT_DEADLINE_MS = 10_000

/** The turn came at an origin that is not the destination's any more. */
const MOVED = Symbol('moved')

/** Of one origin. */
export const defaultLimits: QueueLimits = { atOnce: 64, waiting: 10_000, waitingBytes: 64 * 1_048_576 }

/** What takes turns, whoever asked for it. */
interface Delivery extends Taker, SendOptions {
  readonly flow: string
  readonly customerId: string
  readonly key: string
  readonly body: Uint8Array
  /** Where to at this moment, and how. */
  target(): DeliveryConfig
  /** Of its exchange, which may be over after the result; undefined: nothing was sent. */
  over?: Promise<boolean>
}

/**
 * Sends batches to their destinations (docs/architecture/protocol.md, "Delivery"): keep-alive, one bounded queue an
 * origin, one deadline an attempt, redirects not followed, only to permitted addresses.
 *
 * The deadline and `durationMs` begin when the attempt's turn comes. Waiting for it is no failure of the
 * destination and never ends in one: an attempt that finds the queue full, is withdrawn, or cannot have its name
 * looked up or its socket opened for a reason of ours, comes back `unsent`. The wait is bounded, for the queue is, and
 * each turn before it ends within the deadline.
 *
 * The destination, its headers and its secret are read when the turn comes. An attempt whose origin is another one by
 * then leaves its turn and waits for one there.
 *
 * A turn takes a connection of its origin and a place among all attempts of the process, both at once: what waits for
 * one holds none of the other.
 *
 * An attempt is one request. It is not repeated here, not even when a kept-alive connection turns out to
 * be closed: the destination may have read it, and the number of attempts is the caller's to count.
 */
export class DeliveryClient {
  readonly #clock: Clock
  readonly #telemetry: DeliveryTelemetry
  readonly #guard: Guard
  readonly #limits: QueueLimits
  readonly #places: Places
  readonly #bodies: SharedBudget
  readonly #idlePlaces: Places
  readonly #deadlineMs: number
  readonly #userAgent: string
  readonly #pools = new Map<string, OriginPool>()
  readonly #running = new Set<Exchange>()
  #closed: Promise<void> | undefined
  #onQuiet: (() => void) | undefined

  constructor(options: DeliveryClientOptions) {
    this.#clock = options.clock
    this.#telemetry = options.telemetry
    this.#guard = new Guard(options)
    this.#limits = { ...defaultLimits, ...options.limits }
    this.#places = new Places(options.places ?? ATTEMPT_PLACES)
    this.#idlePlaces = new Places(options.places ?? ATTEMPT_PLACES)
    this.#bodies = new SharedBudget(options.bodyBytes ?? BODY_BYTES)
    this.#deadlineMs = options.deadlineMs ?? ATTEMPT_DEADLINE_MS
    this.#userAgent = `Penstock/${options.version}`
  }

  /** One attempt with the record of its moment; its buffer is the flow. Rejects only with what `proceed` throws. */
  attempt({ record, key, body, proceed }: Attempt): Promise<AttemptResult> {
    const { uid, buffer } = record()
    const { customerId } = buffer
    return this.#admit({ target: () => record().buffer.delivery, key, body, flow: uid, customerId, proceed })
  }

  /** One attempt to `target`, for a manual retry or a test of a buffer. Rejects only with what `proceed` throws. */
  send(
    target: DeliveryConfig,
    key: string,
    body: Uint8Array,
    options: SendOptions = {},
  ): Promise<AttemptResult> {
    const { flow = target.url, customerId = flow } = options
    return this.#admit({ ...options, target: () => target, key, body, flow, customerId })
  }

  /** Whether an attempt with a body of so many bytes would be taken now. No counts as one that was withheld. */
  hasRoom({ uid, buffer: { delivery, customerId } }: BufferRecord, bytes: number): boolean {
    const taker = { customerId, flow: uid }
    const url = URL.parse(delivery.url)
    const queue = url && this.#pools.get(url.origin)?.queue
    const room = this.#bodies.hasRoom(taker) && (queue?.hasRoom({ ...taker, bytes }) ?? true)
    if (!room) this.#telemetry.withheld('room')
    return room
  }

  gauges(): DeliveryGauges {
    const pools = [...this.#pools.values()]
    const sum = (count: (pool: OriginPool) => number) => pools.reduce((total, pool) => total + count(pool), 0)
    return {
      origins: pools.length,
      running: sum((pool) => pool.queue.running),
      waiting: sum((pool) => pool.queue.waiting),
      idleConnections: sum((pool) => pool.idle),
    }
  }

  /**
   * Refuses what waits and what comes (`unsent`), lets running attempts end for up to `boundMs`, then cuts
   * them; resolves when every connection is closed.
   */
  close(boundMs = this.#deadlineMs): Promise<void> {
    this.#closed ??= this.#close(boundMs)
    return this.#closed
  }

  async #admit(delivery: Delivery): Promise<AttemptResult> {
    if (this.#closed) return unsent('the service is stopping')
    const bytes = delivery.body.length
    if (!this.#bodies.hasRoom(delivery)) return this.#refused('too many bodies wait for destinations')
    this.#bodies.take(delivery, bytes)
    try {
      return await this.#deliver(delivery)
    } finally {
      void Promise.resolve(delivery.over).then(() => this.#bodies.leave(delivery, bytes))
    }
  }

  /** Whoever finds another origin when the turn has come waits for a turn there. */
  async #deliver(delivery: Delivery): Promise<AttemptResult> {
    for (;;) {
      const { url } = delivery.target()
      const origin = httpUrl(url)
      if (!origin) return failed(new BlockedDestinationError(), 0)
      const result = await this.#inTurn(this.#pool(origin), delivery)
      if (result !== MOVED) return result
      if (this.#closed) return unsent('the service is stopping')
    }
  }

  #refused(reason: string): AttemptResult {
    this.#telemetry.withheld('room')
    return unsent(reason)
  }

  #pool(url: URL): OriginPool {
    const known = this.#pools.get(url.origin)
    if (known) return known
    const forget = () => this.#pools.delete(url.origin)
    const queue = new TurnQueue(this.#limits, this.#places)
    const pool = new OriginPool(new URL(url.origin), this.#guard, queue, this.#idlePlaces, forget)
    this.#pools.set(url.origin, pool)
    return pool
  }

  #inTurn(pool: OriginPool, delivery: Delivery): Promise<AttemptResult | typeof MOVED> {
    const { flow, customerId, body, maxWaitMs } = delivery
    const { promise, resolve } = Promise.withResolvers<AttemptResult | typeof MOVED>()
    let stopWaiting = () => {}
    const turn: Turn = {
      customerId,
      flow,
      bytes: body.length,
      start: () => {
        stopWaiting()
        resolve(this.#run(pool, delivery))
      },
      refuse: (reason) => {
        stopWaiting()
        resolve(unsent(reason))
      },
    }
    if (maxWaitMs !== undefined) stopWaiting = this.#limitWait(pool, turn, maxWaitMs)
    if (!pool.queue.enter(turn)) {
      this.#telemetry.withheld('room')
      turn.refuse('too many attempts wait for the destination')
    }
    return promise
  }

  #limitWait(pool: OriginPool, turn: Turn, maxWaitMs: number): () => void {
    return this.#clock.after(maxWaitMs, () => {
      if (pool.withdraw(turn)) turn.refuse(`no free connection to the destination within ${maxWaitMs} ms`)
    })
  }

  /** The connection, the places and the body are given back when the exchange is over, which may be after the result. */
  async #run(pool: OriginPool, delivery: Delivery): Promise<AttemptResult | typeof MOVED> {
    const { flow, customerId, proceed, key, body, readsBody = false } = delivery
    let connection: Connection | undefined
    try {
      const target = delivery.target()
      const url = httpUrl(target.url)
      if (url?.origin !== pool.origin) return MOVED
      if (proceed && !proceed()) return unsent('withdrawn')
      const started = this.#clock.monotonic()
      connection = pool.take(customerId)
      const request = deliveryRequest(target, url, key, body, this.#userAgent)
      const exchange = this.#exchange(connection, request, readsBody)
      delivery.over = exchange.over
      const answer = await exchange.answer
      if (answer.error && lacksSocket(answer.error)) this.#telemetry.withheld('socket')
      const shown = answer.body && withoutSecrets(answer.body, target)
      return resultOf({ ...answer, body: shown }, Math.round(this.#clock.monotonic() - started))
    } finally {
      void Promise.resolve(delivery.over).then((reusable = false) =>
        pool.leave({ customerId, flow }, connection, reusable),
      )
    }
  }

  #exchange(connection: Connection, request: Dispatcher.DispatchOptions, readsBody: boolean): Exchange {
    const options = { clock: this.#clock, deadlineMs: this.#deadlineMs, readsBody }
    const exchange = new Exchange(connection, request, options)
    this.#running.add(exchange)
    exchange.over.then(() => {
      this.#running.delete(exchange)
      if (this.#running.size === 0) this.#onQuiet?.()
    })
    return exchange
  }

  async #close(boundMs: number): Promise<void> {
    for (const pool of [...this.#pools.values()]) pool.queue.empty('the service is stopping')
    await this.#quiet(boundMs)
    for (const exchange of [...this.#running]) exchange.abort(new ClosingError('the service is stopping'))
    await this.#quiet(boundMs)
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
  }

  /** Resolves when no exchange runs, at the latest after `boundMs`. */
  async #quiet(boundMs: number): Promise<void> {
    if (this.#running.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onQuiet = resolve
    const cancel = this.#clock.after(boundMs, resolve)
    await promise
    cancel()
  }
}

/** null: deliveries go to http and https only. */
function httpUrl(text: string): URL | null {
  const url = URL.parse(text)
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : null
}
