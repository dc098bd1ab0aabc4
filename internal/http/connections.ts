import type { Server, Socket } from 'node:net'

/**
 * A bound on open connections (docs/architecture/protocol.md, "Connections"). Those beyond it are told so by the answer to
 * their first request, for what comes before a request is no answer. A tenth more than the bound are told; any more are
 * closed at once.
 */
export class ConnectionBound {
  readonly #limit: number
  #served = 0
  readonly #open = new Set<Socket>()
  readonly #surplus = new Set<Socket>()

  /** `limit`: connections that are served, at least 1. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get open(): Iterable<Socket> {
    return this.#open
  }

  watch(server: Server): void {
    server.maxConnections = this.#limit + Math.ceil(this.#limit / 10)
    server.on('connection', (socket) => this.#opened(socket))
  }

  isSurplus(socket: Socket): boolean {
    return this.#surplus.size > 0 && this.#surplus.has(socket)
  }

  #opened(socket: Socket): void {
    const isSurplus = this.#served === this.#limit
    this.#open.add(socket)
    if (isSurplus) this.#surplus.add(socket)
    else this.#served++
    socket.once('close', () => {
      this.#open.delete(socket)
      if (isSurplus) this.#surplus.delete(socket)
      else this.#served--
    })
  }
}
