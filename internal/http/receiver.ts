import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from 'koa'
import { isIdentifier } from '../domain/identifiers.ts'
import type { Clock } from '../runtime/clock.ts'
import { readBody } from './body.ts'
import { answerEarly } from './early-answer.ts'

/**
 * `/local/receiver/<name>`: a destination that the local instance brings along, so that a first batch can be
 * seen without another server (docs/architecture/protocol.md, "The local instance"). POST and PUT accept, GET shows
 * the last requests, newest first. Invariant: what is kept is bounded, in requests a name and in bytes over all
 * names.
 */

/** One request as GET shows it; `body` is parsed JSON, or text when it is none. */
interface Received {
  receivedAt: number
  method: string
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface ReceiverBounds {
  /** Requests kept a name. */
  requests: number
  /** Bytes of bodies kept over all names; the oldest go first. */
  bytes: number
  /** Largest body accepted, bytes: above the largest batch (16 MB and its envelope). */
  bodyBytes: number
}

const BOUNDS: ReceiverBounds = { requests: 100, bytes: 64 * 1024 * 1024, bodyBytes: 32 * 1024 * 1024 }

/** Weight of a request besides its body, so that empty ones are bounded too. */
const OVERHEAD_BYTES = 1024

export const RECEIVER_PREFIX = '/local/receiver/'

/** The name that a path asks for; undefined when it asks for none. */
export function receiverName(path: string): string | undefined {
  if (!path.startsWith(RECEIVER_PREFIX)) return undefined
  const name = path.slice(RECEIVER_PREFIX.length)
  return isIdentifier(name) ? name : undefined
}

export class Receiver {
  readonly #names = new Map<string, Received[]>()
  /** Every kept request's name, oldest first. */
  readonly #order: string[] = []
  readonly #bounds: ReceiverBounds
  readonly #clock: Clock
  #bytes = 0

  constructor(clock: Clock, bounds: ReceiverBounds = BOUNDS) {
    this.#clock = clock
    this.#bounds = bounds
  }

  /** Koa middleware; passes on what is not its path. */
  readonly middleware = async (ctx: Context, next: () => Promise<void>): Promise<void> => {
    const name = receiverName(ctx.path)
    if (name === undefined) return next()
    if (ctx.method === 'POST' || ctx.method === 'PUT') return this.#accept(ctx, name)
    if (ctx.method === 'GET' || ctx.method === 'HEAD') return this.#show(ctx, name)
    ctx.status = 405
    ctx.set('Allow', 'GET, HEAD, POST, PUT')
    ctx.body = { error: 'Method not allowed' }
  }

  async #accept(ctx: Context, name: string): Promise<void> {
    const body = await readBody(ctx.req, ctx.res, this.#bounds.bodyBytes)
    if (typeof body === 'string') {
      ctx.respond = false
      if (body === 'too-large') this.#refuse(ctx, 413, '{"error":"Request body is too large"}')
      if (body === 'encoded') this.#refuse(ctx, 415, '{"error":"Encoded bodies are not supported"}')
      return
    }
    this.#keep(name, { receivedAt: this.#clock.now(), method: ctx.method, headers: ctx.headers, body })
    ctx.body = { received: true }
  }

  #refuse({ req, res }: Context, status: number, body: string): void {
    answerEarly(this.#clock, req, res, { status, body })
  }

  #keep(name: string, request: Received): void {
    const list = this.#names.get(name) ?? []
    this.#names.set(name, list)
    list.push(request)
    this.#order.push(name)
    this.#bytes += weight(request)
    if (list.length > this.#bounds.requests) {
      this.#forget(name)
      this.#order.splice(this.#order.indexOf(name), 1)
    }
    while (this.#bytes > this.#bounds.bytes) this.#forget(this.#order.shift()!)
  }

  #forget(name: string): void {
    const list = this.#names.get(name)!
    this.#bytes -= weight(list.shift()!)
    if (list.length === 0) this.#names.delete(name)
  }

  #show(ctx: Context, name: string): void {
    const newestFirst = (this.#names.get(name) ?? []).toReversed()
    ctx.type = 'application/json'
    ctx.body = `[${newestFirst.map(asJson).join(',\n')}]\n`
  }
}

function weight(request: Received): number {
  return request.body.length + OVERHEAD_BYTES
}

function asJson(request: Received): string {
  const { receivedAt, method, headers, body } = request
  return `${JSON.stringify({ receivedAt, method, headers }).slice(0, -1)},"body":${bodyAsJson(body)}}`
}

/** JSON stays the sender's own text: parsing and printing it again would change numbers. */
function bodyAsJson(body: Buffer): string {
  const text = body.toString('utf8')
  try {
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify(text)
  }
}
