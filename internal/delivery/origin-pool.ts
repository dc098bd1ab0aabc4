import type { Taker } from '../runtime/shared-budget.ts'
import { Connection } from './connection.ts'
import type { Guard } from './guard.ts'
import type { Places } from './places.ts'
import type { Turn, TurnQueue } from './queue.ts'

const done = new Error('no longer needed')

interface Idle {
  readonly connection: Connection
  /** Who used it last, and holds the place. */
  readonly customerId: string
}

/** One origin: who waits for it, and its idle connections. */
export class OriginPool {
  readonly queue: TurnQueue
  readonly #origin: URL
  readonly #guard: Guard
  readonly #idlePlaces: Places
  readonly #onUnused: () => void
  /** Last used last: the connection most likely to be alive is taken first, the others age and close. */
  readonly #idle: Idle[] = []

  /** `idlePlaces`: of all origins. `onUnused`: nothing runs, waits or idles any more. */
  constructor(origin: URL, guard: Guard, queue: TurnQueue, idlePlaces: Places, onUnused: () => void) {
    this.queue = queue
    this.#origin = origin
    this.#guard = guard
    this.#idlePlaces = idlePlaces
    this.#onUnused = onUnused
  }

  get origin(): string {
    return this.#origin.origin
  }

  get idle(): number {
    return this.#idle.length
  }

  /** `customerId`: who pays for the lookup of a new connection. */
  take(customerId: string): Connection {
    const idle = this.#idle.pop()
    if (idle) this.#idlePlaces.leave(idle.customerId)
    const onDisconnect = (connection: Connection) => this.#drop(connection)
    return idle?.connection ?? new Connection(this.#origin, this.#guard, customerId, onDisconnect)
  }

  /** A turn is over; its connection can be used again or not. */
  leave(taker: Taker, connection?: Connection, reusable = false): void {
    const { customerId } = taker
    if (reusable && connection && this.#idlePlaces.mayTake(customerId)) {
      this.#idlePlaces.take(customerId)
      this.#idle.push({ connection, customerId })
    } else connection?.destroy(done)
    this.queue.leave(taker)
    this.#reportUnused()
  }

  /** Takes out what waits; false when it does not (any more). */
  withdraw(turn: Turn): boolean {
    const withdrawn = this.queue.withdraw(turn)
    if (withdrawn) this.#reportUnused()
    return withdrawn
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((idle) => this.#end(idle)))
    this.#reportUnused()
  }

  /** A connection in use reports its end to its exchange; only an idle one is dropped here. */
  #drop(connection: Connection): void {
    const at = this.#idle.findIndex((idle) => idle.connection === connection)
    if (at < 0) return
    for (const idle of this.#idle.splice(at, 1)) this.#end(idle)
    this.#reportUnused()
  }

  #end({ connection, customerId }: Idle): Promise<void> {
    this.#idlePlaces.leave(customerId)
    return connection.destroy(done)
  }

  #reportUnused(): void {
    if (this.#idle.length === 0 && this.queue.running === 0 && this.queue.waiting === 0) this.#onUnused()
  }
}
