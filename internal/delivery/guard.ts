/**
 * Opens the sockets of deliveries, and only to permitted addresses (docs/architecture/protocol.md, "Destinations").
 * The check is part of connecting: the addresses that are judged are the ones handed to the socket, so a name that
 * resolves differently a moment later changes nothing. TLS verifies the certificate against the name.
 */
import { isIP, type LookupFunction, type Socket, connect as tcpConnect } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import { type Cidr, isPermitted, isPermittedPort, PERMITTING, portBlocked } from './addresses.ts'
import type { ResolvedAddress } from './dns/addresses.ts'

/** The port of the destination is not permitted, or none of its addresses is. */
export class BlockedDestinationError extends Error {
  override readonly name = 'BlockedDestinationError'

  /** `message` is stored and shown: it names no address. */
  constructor(message = `the destination has no public address, ${PERMITTING}`) {
    super(message)
  }
}

/** TCP stood, TLS failed; `cause` says how. */
export class HandshakeError extends Error {
  override readonly name = 'HandshakeError'
}

/** All addresses of a name, best first, at the expense of a customer. Rejects as `Lookups.resolve`. */
export type Resolve = (hostname: string, customerId: string) => Promise<ResolvedAddress[]>

export interface GuardOptions {
  allow: readonly Cidr[]
  /** Those that may be reached; default: all. */
  ports?: readonly number[] | undefined
  resolve: Resolve
  /** PEM of the trusted roots. Default: those of Node, with NODE_EXTRA_CA_CERTS. */
  roots?: string
}

export interface OriginAddress {
  /** A name, or an address without brackets. */
  hostname: string
  port: number
  secure: boolean
}

export class Guard {
  readonly #allow: readonly Cidr[]
  readonly #ports: readonly number[] | undefined
  readonly #resolve: Resolve
  readonly #roots: string | undefined

  constructor(options: GuardOptions) {
    this.#allow = options.allow
    this.#ports = options.ports
    this.#resolve = options.resolve
    this.#roots = options.roots
  }

  /**
   * Begins to connect; `done` is called once, with the usable socket or the reason against it. The socket
   * is returned at once, so that the caller can give up: destroying it is always enough. `customerId`: who pays for the
   * lookup. Throws BlockedDestinationError for a port, and for a literal address, which no lookup would ever see.
   */
  connect(
    address: OriginAddress,
    customerId: string,
    done: (error: Error | null, socket: Socket) => void,
  ): Socket {
    const { hostname, port, secure } = address
    if (!isPermittedPort(port, this.#ports)) throw new BlockedDestinationError(portBlocked(port))
    if (isIP(hostname) && !isPermitted(hostname, this.#allow)) throw new BlockedDestinationError()
    const options = { host: hostname, port, lookup: this.#lookupFor(customerId), autoSelectFamily: true }
    const socket = (secure ? this.#secure(options) : tcpConnect(options)).setNoDelay(true)
    let connected = false
    socket.once('connect', () => {
      connected = true
    })
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      socket.removeListener('error', failed)
      done(null, socket)
    })
    const failed = (error: Error) => done(secure && connected ? handshakeFailure(error) : error, socket)
    socket.once('error', failed)
    return socket
  }

  #secure(options: {
    host: string
    port: number
    lookup: LookupFunction
    autoSelectFamily: boolean
  }): Socket {
    return tlsConnect({
      ...options,
      // An address is no server name, nor has one a dot at its end (RFC 6066).
      servername: isIP(options.host) ? '' : options.host.replace(/\.$/, ''),
      ALPNProtocols: ['http/1.1'],
      ...(this.#roots === undefined ? {} : { ca: this.#roots }),
    })
  }

  #lookupFor(customerId: string): LookupFunction {
    return (hostname, options, callback) => {
      this.#permitted(hostname, customerId).then(
        (addresses) => {
          const [first] = addresses
          if (options.all || !first) callback(null, addresses)
          else callback(null, first.address, first.family)
        },
        (error) => callback(error, []),
      )
    }
  }

  async #permitted(hostname: string, customerId: string): Promise<ResolvedAddress[]> {
    const addresses = await this.#resolve(hostname, customerId)
    const permitted = addresses.filter(({ address }) => isPermitted(address, this.#allow))
    if (permitted.length === 0) throw new BlockedDestinationError()
    return permitted
  }
}

/** A peer that goes away during the handshake is a broken connection; all else is TLS itself. */
function handshakeFailure(error: NodeJS.ErrnoException): Error {
  const network = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(error.code ?? '')
  return network ? error : new HandshakeError('TLS handshake failed', { cause: error })
}
