import type { Server, Socket } from 'node:net'

/**
 * A bound on open connections (docs/architecture/protocol.md, "Connections"). Those beyond it are told so by the answer to
 * their first request, for what comes before a request is no answer. A tenth more than the bound are told; any more are
 * closed at once.
 */
export class ConnectionBound {
  readonly #limit: number
  #open = 0
  readonly #surplus = new Set<Socket>()

  /** `limit`: connections that are served, at least 1. */
  constructor(limit: number) {
    this.#limit = limit
  }

  watch(server: Server): void {
    server.maxConnections = this.#limit + Math.ceil(this.#limit / 10)
    server.on('connection', (socket) => this.#opened(socket))
  }

  isSurplus(socket: Socket): boolean {
    return this.#surplus.size > 0 && this.#surplus.has(socket)
  }

  #opened(socket: Socket): void {
    if (this.#open === this.#limit) {
      this.#surplus.add(socket)
      socket.once('close', () => this.#surplus.delete(socket))
      return
    }
    this.#open++
    socket.once('close', () => this.#open--)
  }
}
