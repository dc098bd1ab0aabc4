/** TLS before a plain server, with the certificate of the tests: for 127.0.0.1, from a root of its own. */
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'

const pathOf = (name: string) =>
  fileURLToPath(new URL(`../../support/certificates/${name}.pem`, import.meta.url))

/** PEM file of the authority that signed the certificate. */
export const authorityFile = pathOf('roots')

export interface TlsFront {
  readonly port: number
  close(): Promise<void>
}

/** Leads to `port` of 127.0.0.1. */
export async function tlsFront(port: number): Promise<TlsFront> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  }
  const options = { key: readFileSync(pathOf('sink.key')), cert: readFileSync(pathOf('sink.cert')) }
  const server = createServer(options, (near) => {
    const far = connect(port, '127.0.0.1')
    keep(far)
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
  })
  // Also those whose handshake fails.
  server.on('connection', keep)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
