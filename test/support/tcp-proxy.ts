/**
 * A network between a client and its server that a test can make bad: slow, silent in one direction or both, cut at
 * once or at a chosen byte. Silence delays bytes and loses none, because TCP repeats them once the network is back.
 * That holds for the last bytes of a client that has gone away meanwhile, too.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

/** `up`: from the client to the server. */
export type Direction = 'up' | 'down'

/** Bytes under way in one direction of one connection; who sends more has to wait. */
const WINDOW_BYTES = 1024 * 1024

/** Takes the bytes of one direction of one connection as they come, and returns those that go on now. */
export type Filter = (chunk: Buffer) => Buffer

/** The filters of one new connection. */
export type Filters = () => Readonly<Record<Direction, Filter>>

export interface Cut {
  readonly direction: Direction
  /** Bytes that still pass, of all connections together. */
  readonly afterBytes: number
}

interface Weather {
  latencyMs: number
  /** Of each direction; all connections share it. */
  bytesPerSecond: number
  /** When the last byte that was taken will have left, by direction, on the clock of `performance`. */
  readonly freeAt: Record<Direction, number>
  readonly silent: Set<Direction>
  cut: { readonly direction: Direction; leftBytes: number } | null
}

const passAll: Filters = () => ({ up: (chunk) => chunk, down: (chunk) => chunk })

export class TcpProxy {
  readonly #server: Server
  readonly #filters: Filters
  readonly #weather: Weather = {
    latencyMs: 0,
    bytesPerSecond: Number.POSITIVE_INFINITY,
    freeAt: { up: 0, down: 0 },
    silent: new Set(),
    cut: null,
  }
  readonly #pipes = new Set<Pipe>()
  #cuts = 0

  private constructor(server: Server, filters: Filters) {
    this.#server = server
    this.#filters = filters
  }

  /** Listens on a free port of 127.0.0.1; leads to `port` of it. */
  static async to(port: number, filters: Filters = passAll): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true })
    const proxy = new TcpProxy(server, filters)
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

  /** So many bytes pass a second in each direction, of all connections together: who comes later waits behind. */
  throttle(bytesPerSecond: number): void {
    this.#weather.bytesPerSecond = bytesPerSecond
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

  /** Closes the client's end of every connection. The server gets what was under way, then the end. */
  hangUp(): void {
    for (const pipe of this.#pipes) pipe.hangUp()
  }

  /**
   * Closes every connection once the bytes have passed; `null`: none. The other end gets the bytes before the cut, so a
   * server acts on a request whose answer is lost. Replaces an earlier cut that did not take place.
   */
  cutAt(cut: Cut | null): void {
    this.#weather.cut = cut && { direction: cut.direction, leftBytes: cut.afterBytes }
  }

  /** Cuts of `cutAt` that took place. */
  get cuts(): number {
    return this.#cuts
  }

  /** A network without faults again; what was held back arrives. */
  heal(): void {
    this.#weather.latencyMs = 0
    this.#weather.bytesPerSecond = Number.POSITIVE_INFINITY
    this.#weather.silent.clear()
    for (const pipe of this.#pipes) pipe.flush()
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.reset()
    await closed
  }

  #join(near: Socket, far: Socket): void {
    const { up, down } = this.#filters()
    const onCut = () => {
      this.#cuts += 1
      for (const pipe of this.#pipes) pipe.close()
    }
    const pipes = [
      new Pipe(near, far, 'up', this.#weather, up, onCut),
      new Pipe(far, near, 'down', this.#weather, down, onCut),
    ]
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
  /** Called when the receiver's socket has taken the chunk, or is gone. */
  readonly onPassed: (() => void) | undefined
}

/** One direction of one connection. */
class Pipe {
  readonly #from: Socket
  readonly #to: Socket
  readonly #direction: Direction
  readonly #weather: Weather
  readonly #filter: Filter
  readonly #onCut: () => void
  readonly #underWay: UnderWay[] = []
  bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    from: Socket,
    to: Socket,
    direction: Direction,
    weather: Weather,
    filter: Filter,
    onCut: () => void,
  ) {
    this.#from = from
    this.#to = to
    this.#direction = direction
    this.#weather = weather
    this.#filter = filter
    this.#onCut = onCut
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
      this.#pass(next)
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

  hangUp(): void {
    if (this.#direction === 'up') this.#from.destroy()
  }

  close(): void {
    this.#from.destroy()
    this.#to.destroy()
  }

  #take(bytes: Buffer | null): void {
    const chunk = bytes && this.#filter(bytes)
    if (chunk?.length === 0) return
    const { cut } = this.#weather
    if (!chunk || cut?.direction !== this.#direction) this.#put(chunk)
    else if (chunk.length <= cut.leftBytes) {
      cut.leftBytes -= chunk.length
      this.#put(chunk)
    } else {
      this.#weather.cut = null
      this.#put(chunk.subarray(0, cut.leftBytes), this.#onCut)
    }
  }

  #put(chunk: Buffer | null, onPassed?: () => void): void {
    this.bytes += chunk?.length ?? 0
    this.#underWay.push({
      due: this.#leavesAt(chunk?.length ?? 0) + this.#weather.latencyMs,
      chunk,
      onPassed,
    })
    if (this.bytes >= WINDOW_BYTES) this.#from.pause()
    this.flush()
  }

  #leavesAt(bytes: number): number {
    const { freeAt, bytesPerSecond } = this.#weather
    const at = Math.max(performance.now(), freeAt[this.#direction]) + (bytes * 1_000) / bytesPerSecond
    freeAt[this.#direction] = at
    return at
  }

  #pass({ chunk, onPassed }: UnderWay): void {
    if (chunk) {
      this.bytes -= chunk.length
      if (this.#to.writable) this.#to.write(chunk, onPassed)
      else onPassed?.()
    } else if (this.#from.destroyed) this.#to.destroySoon()
    else this.#to.end()
  }
}
