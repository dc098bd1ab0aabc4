/**
 * A network between a client and its server that can be made bad: slow, silent in one direction or both, cut.
 * What is under way in silence is not lost but late, as TCP repeats it once the network is back: also what a
 * client sent that has gone away meanwhile.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

/** `up`: from the client to the server. */
export type Direction = 'up' | 'down'

/** Bytes under way in one direction of one connection; who sends more has to wait. */
const WINDOW_BYTES = 1024 * 1024

interface Weather {
  latencyMs: number
  readonly silent: Set<Direction>
}

export class TcpProxy {
  readonly #server: Server
  readonly #weather: Weather = { latencyMs: 0, silent: new Set() }
  readonly #pipes = new Set<Pipe>()

  private constructor(server: Server) {
    this.#server = server
  }

  /** Listens on a free port of 127.0.0.1; leads to `port` of it. */
  static async to(port: number): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true })
    const proxy = new TcpProxy(server)
    server.on('connection', (near) =>
      proxy.#join(near, connect({ port, host: '127.0.0.1', allowHalfOpen: true })),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed')
    return address.port
  }

  /** The same URL through this proxy. */
  through(url: string): string {
    const through = new URL(url)
    through.port = String(this.port)
    return through.href
  }

  /** Everything takes so much longer, ms, in each direction. */
  delay(latencyMs: number): void {
    this.#weather.latencyMs = latencyMs
  }

  /** Nothing passes in this direction, on connections that are there and on new ones, until `heal`. */
  silence(direction: Direction): void {
    this.#weather.silent.add(direction)
  }

  /** Nothing passes in either direction until `heal`; both ends take their connections for open. */
  blackhole(): void {
    for (const direction of ['up', 'down'] as const) this.silence(direction)
  }

  /** Bytes that were sent and have not been passed on. */
  get underWay(): number {
    return [...this.#pipes].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Cuts every connection with RST; what is under way is lost. New ones are let through. */
  reset(): void {
    for (const pipe of this.#pipes) pipe.reset()
  }

  /** A network without faults again; what was held back arrives. */
  heal(): void {
    this.#weather.latencyMs = 0
    this.#weather.silent.clear()
    for (const pipe of this.#pipes) pipe.flush()
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.reset()
    await closed
  }

  #join(near: Socket, far: Socket): void {
    const pipes = [new Pipe(near, far, 'up', this.#weather), new Pipe(far, near, 'down', this.#weather)]
    for (const pipe of pipes) this.#pipes.add(pipe)
    let open = 2
    for (const socket of [near, far]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        if (--open === 0) for (const pipe of pipes) this.#pipes.delete(pipe)
      })
    }
  }
}

interface UnderWay {
  readonly due: number
  /** null: the end of the sender's bytes. */
  readonly chunk: Buffer | null
}

/** One direction of one connection. */
class Pipe {
  readonly #from: Socket
  readonly #to: Socket
  readonly #direction: Direction
  readonly #weather: Weather
  readonly #underWay: UnderWay[] = []
  bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(from: Socket, to: Socket, direction: Direction, weather: Weather) {
    this.#from = from
    this.#to = to
    this.#direction = direction
    this.#weather = weather
    from.on('data', (chunk: Buffer) => this.#take(chunk))
    from.on('end', () => this.#take(null))
    // Without an end it was cut: the other side hears of it as of everything else.
    from.on('close', () => this.#take(null))
    to.on('drain', () => this.flush())
  }

  /** Passes on what is due. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (!this.#weather.silent.has(this.#direction)) {
      const next = this.#underWay[0]
      if (!next || this.#to.writableNeedDrain) break
      const wait = next.due - performance.now()
      if (wait > 0) {
        this.#timer = setTimeout(() => this.flush(), wait)
        break
      }
      this.#underWay.shift()
      this.#pass(next.chunk)
    }
    if (this.bytes < WINDOW_BYTES) this.#from.resume()
  }

  reset(): void {
    clearTimeout(this.#timer)
    this.#underWay.length = 0
    this.bytes = 0
    this.#from.resetAndDestroy()
    this.#to.resetAndDestroy()
  }

  #take(chunk: Buffer | null): void {
    this.bytes += chunk?.length ?? 0
    this.#underWay.push({ due: performance.now() + this.#weather.latencyMs, chunk })
    if (this.bytes >= WINDOW_BYTES) this.#from.pause()
    this.flush()
  }

  #pass(chunk: Buffer | null): void {
    if (chunk) {
      this.bytes -= chunk.length
      if (this.#to.writable) this.#to.write(chunk)
    } else if (this.#from.destroyed) this.#to.destroySoon()
    else this.#to.end()
  }
}
