/** A receiver for Node's http, Express, Koa and `fetch`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, createAnswer, MAX_BYTES, type ReceiverOptions } from './answer.ts'
import { readRawBody, readRequestBody } from './raw-body.ts'

/** What the handler uses of a context of Koa. */
export interface KoaContext {
  readonly req: IncomingMessage
  status: number
  type: string
  body: unknown
  set(field: string, value: string): void
}

export interface Handler {
  /** `createServer(handler.node)` */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** `app.post('/batches', handler.express)`, without `express.json()` in front of it. */
  readonly express: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** `app.use(handler.koa)`, or as a route, without a parser of bodies in front of it. */
  readonly koa: (context: KoaContext) => Promise<void>
  /** A server that gives a `Request` and takes a `Response`. */
  readonly fetch: (request: Request) => Promise<Response>
}

/**
 * Reads the raw body itself, verifies, unwraps, and calls `onBatch`. Answers 401 to a wrong signature, 400 to what is no
 * batch, 413 to a body above the limit, 200 when `onBatch` resolves and 500 when it rejects. The service makes a dead
 * letter of each 4xx at once, and tries again after a 500. Throws a TypeError for options that cannot work.
 */
export function createHandler<Payload = unknown>(options: ReceiverOptions<Payload>): Handler {
  const { maxBytes = MAX_BYTES } = options
  const answerTo = createAnswer(options)
  const answerOf = (request: IncomingMessage) =>
    answerTo(request.headers, () => readRawBody(request, maxBytes))
  const node = async (request: IncomingMessage, response: ServerResponse) =>
    respond(response, await answerOf(request))
  return {
    node,
    express: node,
    koa: async (context) => {
      const { status, body } = await answerOf(context.req)
      context.status = status
      context.type = 'application/json'
      context.body = body
      if (isPartlyRead(context.req)) context.set('connection', 'close')
    },
    fetch: async (request) => {
      const { status, body } = await answerTo(request.headers, () => readRequestBody(request, maxBytes))
      return new Response(body, { status, headers: { 'content-type': 'application/json' } })
    },
  }
}

function respond(response: ServerResponse, { status, body }: Answer): void {
  if (response.destroyed) return
  const close = isPartlyRead(response.req) ? { connection: 'close' } : {}
  response.writeHead(status, { 'content-type': 'application/json', ...close }).end(body)
}

/** What is left of a body above the limit is not read, so the connection cannot be used again. */
function isPartlyRead(request: IncomingMessage): boolean {
  return !request.readableEnded
}
