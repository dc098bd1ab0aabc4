/**
 * Stands before the real admin API: counts what the operator asks, and for chosen requests answers otherwise, breaks the
 * connection, or lets the service do its work and keeps the answer to itself.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { request } from 'undici'

export interface Seen {
  readonly method: string
  readonly path: string
  readonly body: string
  /** Headers as sent; names in lower case. */
  readonly headers: IncomingMessage['headers']
  /** Of the answer; 0: none was given. */
  status: number
  readonly at: number
}

/** `until`: it passes, but not before. `keep`: the service gets the request, its answer goes nowhere. `reset`: nobody gets it. */
export type Interference =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | { readonly until: Promise<unknown> }
  | 'keep'
  | 'reset'

/** undefined: the request passes. */
export type Rule = (seen: Seen) => Interference | undefined

export class AdminProxy {
  readonly #server: Server
  readonly #target: () => string
  readonly #seen: Seen[] = []
  #rule: Rule = () => undefined
  #running = 0
  #mostRunning = 0

  private constructor(server: Server, target: () => string) {
    this.#server = server
    this.#target = target
    server.on('request', (incoming, outgoing) => {
      this.#count(outgoing)
      // A client that is killed in the middle is the subject of some tests.
      this.#serve(incoming, outgoing).catch(() => outgoing.destroy())
    })
  }

  static async to(target: () => string): Promise<AdminProxy> {
    const server = createServer()
    const proxy = new AdminProxy(server, target)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** What happens to requests from now on; without a rule all pass. */
  interfere(rule: Rule = () => undefined): void {
    this.#rule = rule
  }

  /** Requests so far, those about one buffer and with one method when given; creations name it in their body. */
  seen(bufferId?: string, method?: string): Seen[] {
    return this.#seen.filter(
      (each) =>
        (method === undefined || each.method === method) &&
        (bufferId === undefined || concerns(each, bufferId)),
    )
  }

  /** Most requests at once since the last call, but for those that wait for a change. */
  mostAtOnce(): number {
    const most = this.#mostRunning
    this.#mostRunning = this.#running
    return most
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #count(outgoing: ServerResponse): void {
    if (outgoing.req.url?.startsWith('/v1/admin/buffer-states')) return
    this.#running++
    this.#mostRunning = Math.max(this.#mostRunning, this.#running)
    outgoing.once('close', () => this.#running--)
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const { method = '', url = '', headers } = incoming
    const body = Buffer.concat(chunks).toString()
    const seen: Seen = { method, path: url, body, headers, status: 0, at: performance.now() }
    this.#seen.push(seen)
    const interference = this.#rule(seen)
    if (interference === 'reset') {
      outgoing.destroy()
      return
    }
    if (interference === undefined || interference === 'keep' || 'until' in interference) {
      if (interference !== undefined && interference !== 'keep') await interference.until
      const gone = new AbortController()
      outgoing.once('close', () => gone.abort())
      const { host: _host, connection: _connection, ...passed } = headers
      const answer = await request(`${this.#target()}${url}`, {
        method: method as 'GET',
        headers: passed,
        signal: gone.signal,
        body: body === '' ? null : body,
      })
      const text = await answer.body.text()
      if (interference === 'keep') return
      seen.status = answer.statusCode
      outgoing.writeHead(answer.statusCode, { 'content-type': 'application/json' }).end(text)
      return
    }
    seen.status = interference.status
    outgoing
      .writeHead(interference.status, interference.headers)
      .end(interference.body ?? '{"error":"told so"}')
  }
}

export function concerns({ method, path, body }: Seen, bufferId: string): boolean {
  if (method === 'POST') return (JSON.parse(body) as { bufferId?: string }).bufferId === bufferId
  return path.endsWith(`/${bufferId}`)
}
