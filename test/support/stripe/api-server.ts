/** Stripe's API over HTTP: requests written down, answers kept by idempotency key, failures when a test wants them. */

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type Form, parseForm, text, texts } from './form.ts'
import { answer, type Parts, RefusedError } from './requests.ts'
import { MissingError } from './store.ts'

/** A request as it came. */
export interface Asked {
  method: string
  /** With its query. */
  path: string
  body: string
  headers: IncomingMessage['headers']
}

type Show = (object: object, expand: readonly string[]) => object

export class ApiServer {
  readonly asked: Asked[] = []
  /** Every request is answered with this status; undefined: as it should be. */
  failing: number | undefined
  /** Every answer takes so long, ms. */
  slowMs = 0
  readonly #server: Server
  readonly #parts: Parts
  readonly #show: Show
  readonly #sockets = new Set<Socket>()
  readonly #stopping = new AbortController()
  /** Answers by idempotency key, with the request that they belong to. */
  readonly #answered = new Map<string, { request: string; body: string }>()

  /** `show`: an object as Stripe shows it. */
  constructor(server: Server, parts: Parts, show: Show) {
    this.#server = server
    this.#parts = parts
    this.#show = show
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    server.on('request', (request, response) => void this.#serve(request, response))
  }

  /** Cuts every connection. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = 'GET', url: path = '/', headers } = request
    const body = Buffer.concat(chunks).toString()
    this.asked.push({ method, path, body, headers })
    if (this.slowMs > 0)
      await delay(this.slowMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
    if (this.#stopping.signal.aborted) return
    const { status, text: answered } = this.#answer(method, path, body, headers)
    response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_double' })
    response.end(answered)
  }

  #answer(
    method: string,
    path: string,
    body: string,
    headers: IncomingMessage['headers'],
  ): { status: number; text: string } {
    if (this.failing !== undefined) return refusal(this.failing, { type: 'api_error', message: 'An error' })
    if (!headers.authorization?.startsWith('Bearer ')) {
      return refusal(401, { type: 'invalid_request_error', message: 'You did not provide an API key.' })
    }
    const key = method === 'POST' ? headers['idempotency-key'] : undefined
    const known = typeof key === 'string' ? this.#answered.get(key) : undefined
    const asked = `${method} ${path} ${body}`
    if (known !== undefined && known.request !== asked) {
      return refusal(400, {
        type: 'idempotency_error',
        message: 'Keys can only be used with the same parameters',
      })
    }
    if (known !== undefined) return { status: 200, text: known.body }
    try {
      const answered = this.#textOf(method, path, body)
      if (typeof key === 'string') this.#answered.set(key, { request: asked, body: answered })
      return { status: 200, text: answered }
    } catch (error) {
      return refusalOf(error as Error)
    }
  }

  #textOf(method: string, address: string, body: string): string {
    const [path = '', query = ''] = address.split('?')
    const form = parseForm(method === 'POST' ? body : query)
    const found = answer(this.#parts, method, path, form)
    if (found === undefined) throw new RefusedError(`Unrecognized request URL (${method}: ${path}).`)
    const expand = texts(form, 'expand')
    if ('object' in found) return JSON.stringify(this.#show(found.object, expand))
    const { page, hasMore } = pageOf(found.list, form)
    const inner = expand.map((path) => path.replace(/^data\./, ''))
    const data = page.map((object) => this.#show(object, inner))
    return JSON.stringify({ object: 'list', data, has_more: hasMore, url: found.url })
  }
}

function pageOf(list: readonly object[], form: Form): { page: object[]; hasMore: boolean } {
  const after = text(form, 'starting_after')
  const start = after === undefined ? 0 : list.findIndex((each) => (each as { id: string }).id === after) + 1
  const end = start + Number(text(form, 'limit') ?? 10)
  return { page: list.slice(start, end), hasMore: end < list.length }
}

function refusalOf(error: Error): { status: number; text: string } {
  if (error instanceof MissingError) {
    return refusal(404, {
      type: 'invalid_request_error',
      code: 'resource_missing',
      message: error.message,
      param: error.param,
    })
  }
  const code = error instanceof RefusedError ? error.code : undefined
  return refusal(400, { type: 'invalid_request_error', message: error.message, ...(code && { code }) })
}

function refusal(status: number, error: object): { status: number; text: string } {
  return { status, text: JSON.stringify({ error }) }
}
