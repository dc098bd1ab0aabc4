/**
 * A real HTTP destination for tests: it records what it receives, byte for byte and in order, and answers
 * as it is told, well or badly. Binds 127.0.0.1 only.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

export interface SinkRequest {
  /** 0, 1, 2 … in the order in which the requests were received completely. */
  readonly order: number
  /** Unix ms at which the last byte of the body was read. */
  readonly at: number
  readonly method: string
  /** Path and query as sent. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: IncomingMessage['headers']
  /** Names and values alternating, as sent. */
  readonly rawHeaders: readonly string[]
  /** The name that a TLS client asked for; false when it named none, undefined without TLS. */
  readonly servername: string | false | undefined
  /** The exact bytes of the body. */
  readonly body: Buffer
  /** The body parsed as JSON. */
  json(): unknown
  /** Calls back, with the time, when the connection is closed behind this request and before another one. */
  onClosed(listener: (at: number) => void): void
}

/**
 * What the sink does with a request it has read. `delayMs` passes before anything is answered.
 * - `hang`: never answers. `reset`: RST, without an answer. `close`: FIN, without an answer.
 * - `half-head`: the head breaks off, then FIN. `half`: `status` and a head that promises more body than
 *   comes, then FIN. `slow-head`: one byte of an endless head every 20 ms. `garbage`: bytes that are no HTTP.
 * - `endless`: `status` and a body that never ends, as fast as it is read. `drip`: the same, a byte every 20 ms.
 */
export interface SinkAnswer {
  fault?: 'hang' | 'reset' | 'close' | 'half-head' | 'half' | 'slow-head' | 'garbage' | 'endless' | 'drip'
  /** Default 200. */
  status?: number
  headers?: Record<string, string>
  /** Default empty. */
  body?: string | Uint8Array
  delayMs?: number
}

export type SinkBehaviour = SinkAnswer | ((request: SinkRequest) => SinkAnswer | Promise<SinkAnswer>)

/** Answers the nth request with the nth answer; the last one repeats. */
export function inTurn(...answers: SinkAnswer[]): SinkBehaviour {
  let next = 0
  return () => answers[Math.min(next++, answers.length - 1)] ?? {}
}

export function redirectTo(location: string, status = 302): SinkAnswer {
  return { status, headers: { location } }
}

export interface SinkOptions {
  /** PEM; makes the sink speak TLS. */
  tls?: { key: string; cert: string }
  /** Default 0: any free port. */
  port?: number
}

interface Waiter {
  check(): void
  fail(error: Error): void
}

/** Starts a sink that answers 200 to everything until told otherwise. */
export async function startSink(options: SinkOptions = {}): Promise<Sink> {
  const server = options.tls ? createTlsServer(options.tls) : createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  return new Sink(server, options.tls ? 'https' : 'http')
}

export class Sink {
  readonly #server: Server
  readonly #scheme: string
  readonly #sockets = new Set<Socket>()
  /** Whoever wants to know when a connection is closed: of its latest request. */
  readonly #closings = new WeakMap<Socket, (at: number) => void>()
  readonly #behaviours = new Map<string, SinkBehaviour>()
  readonly #requests: SinkRequest[] = []
  readonly #waiters = new Set<Waiter>()
  #otherwise: SinkBehaviour = {}
  #accepted = 0
  #cleared = 0

  constructor(server: Server, scheme: string) {
    this.#server = server
    this.#scheme = scheme
    server.on('connection', (socket) => this.#track(socket))
    server.on('request', (request, response) => {
      // A client that goes away in the middle is the subject of some tests, never a failure of the sink.
      this.#serve(request, response).catch(() => request.socket.destroy())
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** `host` lets a test spell the address in another way, or name it. */
  url(path = '/', host = '127.0.0.1'): string {
    return `${this.#scheme}://${host}:${this.port}${path}`
  }

  /** What to do with everything that no `on` names. */
  otherwise(behaviour: SinkBehaviour): void {
    this.#otherwise = behaviour
  }

  /** What to do with requests to `path` (without its query). */
  on(path: string, behaviour: SinkBehaviour): void {
    this.#behaviours.set(path, behaviour)
  }

  /** Everything received so far, in order; `path` without its query. */
  requests(path?: string): SinkRequest[] {
    return this.#requests.filter((request) => path === undefined || pathname(request) === path)
  }

  /** Connections open right now, idle ones included. */
  get openConnections(): number {
    return this.#sockets.size
  }

  /** Connections accepted since the start. */
  get acceptedConnections(): number {
    return this.#accepted
  }

  /**
   * Resolves with all requests as soon as `predicate` holds of them or of the number of open connections:
   * it is asked after each request, connection and disconnection. Rejects after `timeoutMs` and on close.
   */
  waitFor(
    predicate: (requests: SinkRequest[], openConnections: number) => boolean,
    timeoutMs = 10_000,
  ): Promise<SinkRequest[]> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        check: () => {
          if (!predicate([...this.#requests], this.#sockets.size)) return
          settle()
          resolve([...this.#requests])
        },
        fail: (error) => {
          settle()
          reject(error)
        },
      }
      const timer = setTimeout(() => waiter.fail(new Error(this.#unmet(timeoutMs))), timeoutMs)
      const settle = () => {
        clearTimeout(timer)
        this.#waiters.delete(waiter)
      }
      this.#waiters.add(waiter)
      waiter.check()
    })
  }

  /** Resolves with all requests once there are `count`, to `path` when it is given. */
  waitForCount(count: number, path?: string, timeoutMs = 10_000): Promise<SinkRequest[]> {
    return this.waitFor(() => this.requests(path).length >= count, timeoutMs)
  }

  /** Forgets what was received; `order` goes on. */
  clear(): void {
    this.#cleared += this.#requests.length
    this.#requests.length = 0
  }

  /** Cuts every connection and frees the port. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
    for (const waiter of this.#waiters) waiter.fail(new Error('the sink was closed'))
  }

  #unmet(timeoutMs: number): string {
    const paths = this.#requests.slice(-10).map((request) => `${request.method} ${request.path}`)
    return `condition not met in ${timeoutMs} ms: ${this.#requests.length} requests, ${this.#sockets.size} connections; last: ${paths.join(', ')}`
  }

  #track(socket: Socket): void {
    this.#accepted++
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#closings.get(socket)?.(Date.now())
      this.#changed()
    })
    this.#changed()
  }

  #changed(): void {
    for (const waiter of this.#waiters) waiter.check()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const received = await this.#record(request)
    const behaviour = this.#behaviours.get(pathname(received)) ?? this.#otherwise
    const answer = typeof behaviour === 'function' ? await behaviour(received) : behaviour
    if (answer.delayMs) await new Promise((resolve) => setTimeout(resolve, answer.delayMs))
    respond(answer, response)
  }

  async #record(request: IncomingMessage): Promise<SinkRequest> {
    const { socket } = request
    this.#closings.delete(socket)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const received: SinkRequest = {
      order: this.#cleared + this.#requests.length,
      at: Date.now(),
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      servername: 'servername' in socket ? ((socket as TLSSocket).servername ?? false) : undefined,
      body,
      json: () => JSON.parse(body.toString('utf8')),
      onClosed: (listener) => {
        if (socket.destroyed) listener(Date.now())
        else this.#closings.set(socket, listener)
      },
    }
    this.#requests.push(received)
    this.#changed()
    return received
  }
}

function pathname(request: SinkRequest): string {
  return request.path.split('?', 1)[0] ?? ''
}

function respond(answer: SinkAnswer, response: ServerResponse): void {
  const socket = response.socket
  if (!socket) return
  const head = `HTTP/1.1 ${answer.status ?? 200} Told\r\n`
  switch (answer.fault) {
    case undefined:
      response.writeHead(answer.status ?? 200, answer.headers).end(answer.body ?? '')
      return
    case 'hang':
      return
    case 'reset':
      socket.resetAndDestroy()
      return
    case 'close':
      socket.end()
      return
    case 'half-head':
      socket.end(`${head}content-type: text/pl`)
      return
    case 'half':
      socket.end(`${head}content-length: 1000\r\n\r\nonly the beginning`)
      return
    case 'garbage':
      socket.write('this is not HTTP at all\r\n\r\n')
      return
    case 'slow-head':
      socket.write(`${head}x-slow: `)
      every20Ms(socket, () => socket.write('a'))
      return
    case 'drip':
      response.writeHead(answer.status ?? 200, answer.headers)
      response.write('.')
      every20Ms(socket, () => response.write('.'))
      return
    case 'endless':
      response.writeHead(answer.status ?? 200, answer.headers)
      pour(response)
  }
}

function every20Ms(socket: Socket, act: () => void): void {
  const timer = setInterval(act, 20)
  socket.once('close', () => clearInterval(timer))
}

function pour(response: ServerResponse): void {
  const chunk = Buffer.alloc(16_384, 'endless ')
  const more = () => {
    while (!response.destroyed && response.write(chunk)) {
      /* until the client no longer keeps up */
    }
  }
  response.on('drain', more)
  more()
}
