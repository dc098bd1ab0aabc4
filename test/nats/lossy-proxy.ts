/** Stands between a client and its server and swallows chosen messages on their way to the client. */
import { connect, createServer, type Server, type Socket } from 'node:net'

export interface LossyProxy {
  /** host:port for clients. */
  address: string
  /** From now on messages whose protocol line satisfies this are swallowed. */
  swallow(which: (line: string) => boolean): void
  swallowed(): number
  /** Cuts every connection; new ones are accepted. */
  cut(): void
  close(): Promise<void>
}

export async function lossyProxy(serverPort: number): Promise<LossyProxy> {
  let which: (line: string) => boolean = () => false
  let count = 0
  const sockets = new Set<Socket>()
  const swallows = (line: string) => {
    const lost = which(line)
    if (lost) count++
    return lost
  }
  const server = createServer((client) => {
    const upstream = connect(serverPort, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream)
    const frames = new Frames((frame) => client.write(frame), swallows)
    upstream.on('data', (chunk: Buffer) => frames.push(chunk))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${portOf(server)}`,
    swallow: (chosen) => {
      which = chosen
    },
    swallowed: () => count,
    cut: () => {
      for (const socket of sockets) socket.destroy()
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  return address.port
}

/** Cuts what the server sends into protocol lines and messages. */
class Frames {
  readonly #pass: (frame: Buffer) => void
  readonly #swallows: (line: string) => boolean
  #rest = Buffer.alloc(0)

  constructor(pass: (frame: Buffer) => void, swallows: (line: string) => boolean) {
    this.#pass = pass
    this.#swallows = swallows
  }

  push(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (;;) {
      const lineEnd = this.#rest.indexOf('\r\n')
      if (lineEnd < 0) return
      const line = this.#rest.toString('latin1', 0, lineEnd)
      const isMessage = line.startsWith('MSG ') || line.startsWith('HMSG ')
      const end = lineEnd + 2 + (isMessage ? Number(line.split(' ').at(-1)) + 2 : 0)
      if (this.#rest.length < end) return
      if (!isMessage || !this.#swallows(line)) this.#pass(this.#rest.subarray(0, end))
      this.#rest = this.#rest.subarray(end)
    }
  }
}
