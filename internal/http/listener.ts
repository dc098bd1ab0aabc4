import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, type ListenOptions, Server as NetServer, type Socket } from 'node:net'
import { errors } from '../domain/errors.ts'
import type { Clock } from '../runtime/clock.ts'
import { ANSWER_HEADER_LINES } from './answer-headers.ts'
import { ConnectionBound } from './connections.ts'
import { answerEarly } from './early-answer.ts'
import { type Handler, type HttpSocket, Turns } from './turns.ts'
import { UnreadAnswers } from './unread-answers.ts'

/**
 * The HTTP listener: limits on what a connection may cost, plain answers to what is no HTTP, and a close
 * that finishes what runs. Invariant: after `close` resolves no request runs and no connection is open.
 */

export interface ListenerOptions {
  host: string
  /** 0: any free port. */
  port: number
  /**
   * Other processes listen on the port, too, and each connection goes to one of them (SO_REUSEPORT). `first`: refused where
   * anybody listens already, for whoever joins unasked would be given some of the connections.
   */
  shared?: 'first' | 'joining' | undefined
  /** A request that takes longer to arrive in whole, headers and body, is answered 408. Ms, default `REQUEST_TIMEOUT_MS`. */
  requestTimeoutMs?: number
  /** An idle connection is closed after this, ms; default `KEEP_ALIVE_TIMEOUT_MS`. */
  keepAliveTimeoutMs?: number
  /** An answer of which the system takes nothing for so long is given up. Ms, default `ANSWER_STALL_MS`. */
  answerStallMs?: number
  /** An answer that is not all taken after so long is given up. Ms, default `ANSWER_TIMEOUT_MS`. */
  answerTimeoutMs?: number
  /** Connections that are served at once; default `MAX_CONNECTIONS`. */
  maxConnections?: number
  /** Told of what is refused before the handler sees it, by status. */
  onRefused?: (status: number) => void
}

/** Whether the listener is closing: answers then ask the client to close its connection too. */
export interface Gate {
  closing: boolean
}

export interface Listener {
  /** `http://host:port` as bound. */
  readonly url: string
  readonly port: number
  /** Stops accepting, lets running requests finish for at most `graceMs`, then cuts what is left. Repeating it joins the first. */
  close(graceMs?: number): Promise<void>
}

/** Headers of one request, bytes: room for two path segments of 10 kB, so that they get their 404. */
export const MAX_HEADER_BYTES = 32 * 1024
/** Of a whole request, and of its headers alone, ms. */
export const REQUEST_TIMEOUT_MS = 30_000
export const HEADERS_TIMEOUT_MS = 15_000
/** Of an answer that nobody reads, and of one that is read slowly, ms. */
export const ANSWER_STALL_MS = 30_000
export const ANSWER_TIMEOUT_MS = 300_000
/** Longer than the usual load balancer's 60 s, ms. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000
/** Of a process. */
export const MAX_CONNECTIONS = 10_000
const IDLE_SWEEP_MS = 20
/** So long a closing listener still answers on connections that idle, ms. */
const LINGER_MS = 300

/** Binds and serves; rejects with the bind error (address in use, no permission). */
export async function listen(
  clock: Clock,
  handler: Handler,
  gate: Gate,
  options: ListenerOptions,
): Promise<Listener> {
  const { host: at, port: wanted, shared } = options
  if (shared === 'first' && wanted !== 0) await refuseTaken(wanted, at)
  const connections = new ConnectionBound(clock, options.maxConnections ?? MAX_CONNECTIONS)
  const server = configure(clock, connections, handler, options)
  await bound(server, { port: wanted, host: at, reusePort: shared !== undefined })
  const stopLooking = giveUpUnread(clock, connections, options)
  const { port } = server.address() as AddressInfo
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  let closing: Promise<void> | undefined
  return {
    url: `http://${host}:${port}`,
    port,
    close: (graceMs = 10_000) => {
      closing ??= close(clock, server, gate, graceMs).finally(stopLooking)
      return closing
    },
  }
}

function bound(server: NetServer, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(options, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** Rejects as listening alone does, and leaves the port free. */
async function refuseTaken(port: number, host: string): Promise<void> {
  const probe = new NetServer()
  await bound(probe, { port, host })
  await new Promise((resolve) => probe.close(resolve))
}

/** The returned function ends it. */
function giveUpUnread(clock: Clock, connections: ConnectionBound, options: ListenerOptions): () => void {
  const unread = new UnreadAnswers({
    clock,
    stallMs: options.answerStallMs ?? ANSWER_STALL_MS,
    timeoutMs: options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS,
  })
  let cancel = clock.after(unread.everyMs, function look() {
    unread.look(connections.open)
    cancel = clock.after(unread.everyMs, look)
  })
  return () => cancel()
}

function configure(
  clock: Clock,
  connections: ConnectionBound,
  handler: Handler,
  options: ListenerOptions,
): Server {
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS
  const server = createServer({
    ServerResponse: connections.answers(),
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout,
    headersTimeout: Math.min(requestTimeout, HEADERS_TIMEOUT_MS),
    keepAliveTimeout: options.keepAliveTimeoutMs ?? KEEP_ALIVE_TIMEOUT_MS,
    // One sweep over all connections instead of a timer a request.
    connectionsCheckingInterval: Math.min(1_000, Math.ceil(requestTimeout / 4)),
    // Node's own refusal has no body.
    requireHostHeader: false,
  })
  // A client that closes its side after its requests still reads their answers.
  Object.assign(server, { httpAllowHalfOpen: true })
  connections.watch(server)
  answerInTurn(clock, server, connections, handler, options.onRefused ?? (() => {}))
  return server
}

const NO_HOST = { status: 400, error: 'A request must have a Host header' }
const TWO_HOSTS = { status: 400, error: 'A request must have one Host header' }
const EXPECTATION = { status: 417, error: 'Only 100-continue can be expected' }
const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT'

function answerInTurn(
  clock: Clock,
  server: Server,
  connections: ConnectionBound,
  handler: Handler,
  onRefused: (status: number) => void,
): void {
  const turns = new Turns()
  const refuse = (req: IncomingMessage, res: ServerResponse, entry: Refusal) => {
    onRefused(entry.status)
    answerEarly(clock, req, res, { ...entry, body: JSON.stringify({ error: entry.error }) })
  }
  const checked = turns.inTurn((req, res) => {
    if (connections.isSurplus(req.socket)) return refuse(req, res, errors.connectionsBusy)
    if (req.headers.host === undefined && req.httpVersion === '1.1') return refuse(req, res, NO_HOST)
    if (hasTwoHosts(req.rawHeaders)) return refuse(req, res, TWO_HOSTS)
    return handler(req, res)
  })
  server.on('request', checked)
  server.on(
    'checkExpectation',
    turns.inTurn((req, res) => refuse(req, res, EXPECTATION)),
  )
  // The body reader invites the body itself, once it knows that it wants it.
  server.on('checkContinue', checked)
  server.on('clientError', (error, socket) => answerClientError(turns, error, socket as Socket, onRefused))
  server.on('connect', (_req, socket) => refuseTunnel(turns, socket as Socket))
}

/** A proxy may go by the other one. Node shows the first alone; its own refusal would have no body. */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n]!
    // Of every webhook: most names differ in length.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  return hosts > 1
}

interface Refusal {
  readonly status: number
  readonly error: string
  readonly retryAfter?: number
}

/** What never became a request, or stopped half-way: the connection is good for one plain answer at most. */
function answerClientError(
  turns: Turns,
  error: NodeJS.ErrnoException,
  socket: HttpSocket,
  onRefused: (status: number) => void,
): void {
  const { code } = error
  if (code === 'ECONNRESET' || (code === TIMED_OUT && hasAnswered(socket))) {
    socket.destroy()
    return
  }
  const [line, text] = clientErrorText(code)
  onRefused(Number.parseInt(line, 10))
  turns.refuse(socket, plainAnswer(line, text))
}

/** Its client has had the time of a whole request, and neither ends its request nor reads the answer. */
function hasAnswered(socket: HttpSocket): boolean {
  const running = socket._httpMessage
  return !socket.writable || (running?.headersSent === true && !running.req.complete)
}

/** CONNECT names no path. Node lets go of the connection of such a request. */
function refuseTunnel(turns: Turns, socket: Socket): void {
  socket.on('error', () => socket.destroy())
  socket.resume()
  turns.refuse(socket, plainAnswer('405 Method Not Allowed', 'Tunnels are not supported', 'Allow: \r\n'))
}

/** `more`: further header lines, each with its end. */
function plainAnswer(line: string, error: string, more = ''): string {
  const body = `${JSON.stringify({ error })}\n`
  return (
    `HTTP/1.1 ${line}\r\nContent-Type: application/json; charset=utf-8\r\n${ANSWER_HEADER_LINES}${more}` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  )
}

function clientErrorText(code: string | undefined): [string, string] {
  if (code === TIMED_OUT) return ['408 Request Timeout', errors.bodyTimeout.error]
  if (code === 'HPE_HEADER_OVERFLOW')
    return ['431 Request Header Fields Too Large', 'Request headers are too large']
  return ['400 Bad Request', 'Malformed HTTP request']
}

function close(clock: Clock, server: Server, gate: Gate, graceMs: number): Promise<void> {
  gate.closing = true
  return new Promise((resolve) => {
    // Not at once: the next request of a busy sender may be under way on a connection that idles here, and a reset
    // leaves it without an answer. Answered, it is told to close the connection itself.
    let cancelSweep = clock.after(LINGER_MS, function sweep() {
      // A connection that was busy when the closing began goes idle later: nobody else would close it.
      server.closeIdleConnections()
      cancelSweep = clock.after(IDLE_SWEEP_MS, sweep)
    })
    const cancelCut = clock.after(graceMs, () => server.closeAllConnections())
    // What HTTP's own `close` does beyond this is to end idle connections.
    NetServer.prototype.close.call(server, () => {
      cancelSweep()
      cancelCut()
      resolve()
    })
  })
}
