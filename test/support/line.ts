/** A TCP line to a server that a test can cut at a chosen byte: of what goes there, or of what comes back. */
import { createConnection, createServer, type Server, type Socket } from 'node:net'

export interface Cut {
  direction: 'there' | 'back'
  /** Bytes that still pass, of all connections together. */
  afterBytes: number
}

export class Line {
  private readonly server: Server
  private readonly sockets = new Set<Socket>()
  private cut: Cut | null = null
  /** Cuts that took place. */
  cuts = 0

  private constructor(server: Server) {
    this.server = server
  }

  /** Opens a port of 127.0.0.1 that leads to `port` of it. */
  static async to(port: number): Promise<Line> {
    const server = createServer()
    const line = new Line(server)
    server.on('connection', (near) => line.join(near, createConnection(port, '127.0.0.1')))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return line
  }

  /** The same URL through this line. */
  through(url: string): string {
    const address = this.server.address()
    if (address === null || typeof address === 'string') throw new Error('the line is closed')
    const through = new URL(url)
    through.port = `${address.port}`
    return through.href
  }

  /** Breaks every connection once the bytes have passed. Replaces an earlier cut that did not take place. */
  cutAt(cut: Cut | null): void {
    this.cut = cut === null ? null : { ...cut }
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise((resolve) => this.server.close(resolve))
  }

  private join(near: Socket, far: Socket): void {
    for (const [from, to, direction] of [
      [near, far, 'there'],
      [far, near, 'back'],
    ] as const) {
      this.sockets.add(from)
      from.on('data', (bytes: Buffer) => this.pass(bytes, to, direction))
      from.on('end', () => to.end())
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.sockets.delete(from)
        to.destroy()
      })
    }
  }

  private pass(bytes: Buffer, to: Socket, direction: Cut['direction']): void {
    if (this.cut?.direction !== direction || bytes.length <= this.cut.afterBytes) {
      if (this.cut?.direction === direction) this.cut.afterBytes -= bytes.length
      to.write(bytes)
      return
    }
    const left = bytes.subarray(0, this.cut.afterBytes)
    this.cut = null
    this.cuts += 1
    // What may pass does pass: the server acts on a request whose answer is lost.
    to.write(left, () => {
      for (const socket of this.sockets) socket.destroy()
    })
  }
}
