/**
 * Sockets of the Postgres client that do not wait for ever. A network that falls silent without a word looks to
 * TCP like a slow one for a quarter of an hour, and the driver waits as long: whatever it asked, and whoever asks
 * next on that connection. The server bounds every statement, so silence beyond that bound is the network's.
 */
import { connect, type Socket } from 'node:net'

/** What the driver tells of where it wants to connect; hosts and ports in pairs, or the path of a Unix socket. */
export interface Target {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path: string | false
}

/** As the driver names a connection in its errors, and the server in TLS. */
type NamedSocket = Socket & { host?: string; port?: number }

/**
 * Opens sockets, each one to the next host. One that has waited `silentMs` for an answer is destroyed with
 * ETIMEDOUT. Behind TLS the driver writes past this socket: there the kernel's own time-outs hold.
 */
export function socketsThatWait(silentMs: number): (target: Target) => Socket {
  let opened = 0
  return ({ host, port, path }) => {
    if (path !== false) return connect(path)
    const turn = opened++ % host.length
    const to = { host: host[turn]!, port: port[turn]! }
    // Not connected yet: what is written until then waits in it, and its failure is one of the socket.
    const socket: NamedSocket = connect(to)
    socket.host = to.host
    socket.port = to.port
    destroyWhenSilent(socket, silentMs)
    return socket
  }
}

function destroyWhenSilent(socket: Socket, silentMs: number): void {
  let waiting = false
  const write = socket.write.bind(socket) as (...given: unknown[]) => boolean
  socket.write = (...given: unknown[]) => {
    waiting = true
    return write(...given)
  }
  socket.on('data', () => {
    waiting = false
  })
  // Counts from the last byte in either direction.
  socket.setTimeout(silentMs, () => {
    if (waiting) socket.destroy(Object.assign(new Error('no answer from Postgres'), { code: 'ETIMEDOUT' }))
  })
}
