/** Stands before the service and forwards to it. What it is told to spoil is done all the same, but answered otherwise. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** `lost`: the service answers, and the connection breaks before the answer. `away`: 503, and the service hears nothing. */
export type Fault = 'lost' | 'away'

export interface Passed {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** Of the service; undefined: it heard nothing. */
  readonly status: number | undefined
}

const AWAY = { 'content-type': 'application/json', 'retry-after': '1' }
const AWAY_BODY = '{"error":"Database is unavailable, try again"}'

export class LossyFront {
  readonly #server: Server
  readonly #faults: Fault[] = []
  readonly #passed: Passed[] = []

  constructor(server: Server) {
    this.#server = server
  }

  /** `target`: address of the service. */
  static async start(target: () => string): Promise<LossyFront> {
    const server = createServer()
    const front = new LossyFront(server)
    server.on('request', (request, response) => void front.#pass(target(), request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return front
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Spoils the next requests, one fault each. */
  spoil(...faults: Fault[]): void {
    this.#faults.push(...faults)
  }

  /** Spoils nothing more. */
  forgive(): void {
    this.#faults.length = 0
  }

  /** All requests since the last call. */
  taken(): Passed[] {
    return this.#passed.splice(0)
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #pass(target: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = this.#faults.shift()
    const body = await buffer(request)
    const answer = fault === 'away' ? undefined : await forwarded(target, request, body)
    const { method = '', url: path = '', headers } = request
    this.#passed.push({ method, path, headers, body: body.toString(), status: answer?.status })
    if (fault === 'lost') request.socket.destroy()
    else if (answer === undefined) response.writeHead(503, AWAY).end(AWAY_BODY)
    else response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  }
}

async function forwarded(target: string, { method, url, headers }: IncomingMessage, body: Buffer) {
  const kept = Object.entries(headers).filter(
    ([name]) => !/^(host|connection|content-length|transfer-)/.test(name),
  )
  return fetch(`${target}${url}`, {
    method: method!,
    headers: Object.fromEntries(kept) as Record<string, string>,
    ...(body.length > 0 && { body: new Uint8Array(body) }),
  })
}
