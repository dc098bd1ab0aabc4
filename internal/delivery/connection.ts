import type { Socket } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import type { Guard } from './guard.ts'

/**
 * One keep-alive connection to an origin, used by one exchange at a time. It owns its socket from the
 * first SYN on: `destroy` leaves nothing open, in whatever state it strikes.
 *
 * No pool of undici's is used: its queue cannot be left again, knows no turns, and drops a client whose
 * socket is still connecting without closing that.
 */
export class Connection {
  readonly #client: Client
  #socket: Socket | undefined
  #connected = false

  /** `onDisconnect` is called whenever the socket is gone; the next dispatch would open another. */
  constructor(origin: URL, guard: Guard, customerId: string, onDisconnect: (connection: Connection) => void) {
    this.#client = new Client(origin, {
      connect: ({ hostname, port, protocol }, callback) => {
        const secure = protocol === 'https:'
        const endpoint = { hostname, port: Number(port) || (secure ? 443 : 80), secure }
        this.#connected = false
        this.#socket = guard.connect(endpoint, customerId, (error, socket) => {
          this.#connected = !error
          if (error) callback(error, null)
          else callback(null, socket)
        })
      },
      // The exchange has one deadline for everything; undici's own timers would only come on top.
      headersTimeout: 0,
      bodyTimeout: 0,
      // Of the servers that close idle connections without a hint most wait 5 s or longer.
      keepAliveTimeout: 4_000,
    })
    this.#client.on('disconnect', () => onDisconnect(this))
  }

  /** Whether the present socket is ready to carry requests, TLS included. */
  get connected(): boolean {
    return this.#connected
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(options, handler)
  }

  /** Ends whatever is under way; its handler gets `error`. */
  async destroy(error: Error): Promise<void> {
    const destroyed = this.#client.destroy(error)
    // A client that is still connecting does not know its socket yet.
    this.#socket?.destroy()
    await destroyed
  }
}
