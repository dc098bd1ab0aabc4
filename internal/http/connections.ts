import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { Clock } from '../runtime/clock.ts'

/**
 * A bound on open connections (docs/architecture/protocol.md, "Connections"). At the bound whoever comes takes the place of
 * the connection that has idled longest. When none has idled for `SPARED_MS`, it is surplus: the answer to its first request
 * tells so, for what comes before a request is no answer. A tenth more than the bound are told; any more are closed at once.
 *
 * Invariant: a connection with a request under way is never closed here.
 */

/** A connection that has idled for less is not closed: its next request may be on its way. Ms. */
export const SPARED_MS = 1_000

interface Connection {
  readonly socket: Socket
  /** Whether it counts as one of those that are served. */
  isServed: boolean
  /** Monotonic ms; of one whose first request has not come, since its opening. undefined: a request is under way. */
  idleSince: number | undefined
  /** Its neighbours among those that idle. */
  older: Connection | undefined
  newer: Connection | undefined
}

export class ConnectionBound {
  readonly #clock: Clock
  readonly #limit: number
  readonly #open = new Map<Socket, Connection>()
  readonly #idle = new IdleConnections()
  #served = 0

  /** `limit`: connections that are served, at least 1. */
  constructor(clock: Clock, limit: number) {
    this.#clock = clock
    this.#limit = limit
  }

  get open(): Iterable<Socket> {
    return this.#open.keys()
  }

  watch(server: Server): void {
    server.maxConnections = this.#limit + Math.ceil(this.#limit / 10)
    server.on('connection', (socket) => this.#opened(socket))
    // That one is closed already. The next finds room.
    server.on('drop', () => this.#closeOldest())
  }

  /**
   * The class of the answers: a connection has one from its request to its end, and idles between two. Node gives an
   * answer its socket before it tells of the request (test/http/node-internals.test.ts). A listener of each answer's
   * `finish` would cost each webhook two microseconds.
   */
  answers(): typeof ServerResponse<IncomingMessage> {
    const connections = this
    return class extends ServerResponse {
      override assignSocket(socket: Socket): void {
        connections.#answerBegan(socket)
        super.assignSocket(socket)
      }

      override detachSocket(socket: Socket): void {
        super.detachSocket(socket)
        connections.#answerEnded(socket)
      }
    }
  }

  /** Whether it stays one too many, now that its request has come. */
  isSurplus(socket: Socket): boolean {
    if (this.#served === this.#open.size) return false
    const connection = this.#open.get(socket)
    return connection !== undefined && !connection.isServed && !this.#serve(connection)
  }

  #opened(socket: Socket): void {
    const connection: Connection = {
      socket,
      isServed: false,
      idleSince: undefined,
      older: undefined,
      newer: undefined,
    }
    this.#open.set(socket, connection)
    socket.once('close', () => this.#forget(connection))
    this.#serve(connection)
    // Of the surplus: else there is none left for the next, which is then closed at once.
    if (this.#open.size > this.#limit) this.#closeOldest()
    this.#idle.add(connection, this.#clock.monotonic())
  }

  #answerBegan(socket: Socket): void {
    const connection = this.#open.get(socket)
    if (connection !== undefined) this.#idle.delete(connection)
  }

  /** It may have closed meanwhile. */
  #answerEnded(socket: Socket): void {
    const connection = this.#open.get(socket)
    if (connection !== undefined) this.#idle.add(connection, this.#clock.monotonic())
  }

  /** Whether there was room, or others made it. */
  #serve(connection: Connection): boolean {
    while (this.#served === this.#limit && this.#closeOldest());
    if (this.#served === this.#limit) return false
    this.#served++
    connection.isServed = true
    return true
  }

  #closeOldest(): boolean {
    const { oldest } = this.#idle
    if (oldest?.idleSince === undefined) return false
    if (this.#clock.monotonic() - oldest.idleSince < SPARED_MS) return false
    this.#forget(oldest)
    oldest.socket.destroy()
    return true
  }

  #forget(connection: Connection): void {
    if (!this.#open.delete(connection.socket)) return
    this.#idle.delete(connection)
    if (connection.isServed) this.#served--
  }
}

/** In the order in which they began to idle. A Map would do, but its first entry stands behind all holes before it. */
class IdleConnections {
  #oldest: Connection | undefined
  #newest: Connection | undefined

  get oldest(): Connection | undefined {
    return this.#oldest
  }

  /** One that is not in yet. */
  add(connection: Connection, now: number): void {
    if (connection.idleSince !== undefined) return
    connection.idleSince = now
    connection.older = this.#newest
    if (this.#newest === undefined) this.#oldest = connection
    else this.#newest.newer = connection
    this.#newest = connection
  }

  delete(connection: Connection): void {
    if (connection.idleSince === undefined) return
    const { older, newer } = connection
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    connection.older = undefined
    connection.newer = undefined
    connection.idleSince = undefined
  }
}
