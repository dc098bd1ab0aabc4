import { Connection } from './connection.ts'
import type { Guard } from './guard.ts'
import { type QueueLimits, TurnQueue } from './queue.ts'

const done = new Error('no longer needed')

/** One origin: who waits for it, and its idle connections. */
export class OriginPool {
  readonly queue: TurnQueue
  readonly #origin: URL
  readonly #guard: Guard
  readonly #onUnused: () => void
  /** Last used last: the connection most likely to be alive is taken first, the others age and close. */
  readonly #idle: Connection[] = []

  /** `onUnused`: nothing runs, waits or idles any more. */
  constructor(origin: URL, guard: Guard, limits: QueueLimits, onUnused: () => void) {
    this.queue = new TurnQueue(limits)
    this.#origin = origin
    this.#guard = guard
    this.#onUnused = onUnused
  }

  get idle(): number {
    return this.#idle.length
  }

  /** `customerId`: who pays for the lookup of a new connection. */
  take(customerId: string): Connection {
    const onDisconnect = (connection: Connection) => this.#drop(connection)
    return this.#idle.pop() ?? new Connection(this.#origin, this.#guard, customerId, onDisconnect)
  }

  /** A turn of `flow` is over; its connection can be used again or not. */
  leave(flow: string, connection?: Connection, reusable = false): void {
    if (reusable && connection) this.#idle.push(connection)
    else connection?.destroy(done)
    this.queue.leave(flow)
    this.#reportUnused()
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((connection) => connection.destroy(done)))
    this.#reportUnused()
  }

  /** A connection in use reports its end to its exchange; only an idle one is dropped here. */
  #drop(connection: Connection): void {
    const at = this.#idle.indexOf(connection)
    if (at < 0) return
    this.#idle.splice(at, 1)
    connection.destroy(done)
    this.#reportUnused()
  }

  #reportUnused(): void {
    if (this.#idle.length === 0 && this.queue.running === 0 && this.queue.waiting === 0) this.#onUnused()
  }
}
