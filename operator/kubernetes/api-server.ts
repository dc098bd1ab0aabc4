/**
 * Requests to the API server. They are made here, because the client of @kubernetes/client-node opens a connection of its
 * own for each one, cannot be aborted while a watch is being opened, and takes 30 quiet seconds of a watch for its end.
 */
import { text } from 'node:stream/consumers'
import type { DispatcherOptions } from '@kubernetes/client-node'
import { Agent, type Dispatcher, ProxyAgent } from 'undici'
import type { ClusterAccess } from './access.ts'
import { ApiError, inBandError, refusal } from './api-error.ts'
import { jsonLines } from './json-lines.ts'
import { type Keeps, withMembers } from './json-members.ts'
import { withShortStrings } from './short-strings.ts'

/** An answer is complete within this time, ms, unless asked otherwise. */
const ANSWER_MS = 30_000
const CONNECT_MS = 10_000
/** Well before the 90 s after which the API server closes a connection that nobody uses. */
const KEEP_ALIVE_MS = 30_000

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface Call {
  query?: Query
  body?: unknown
  /** Default: `application/json`; a PATCH says which kind it is. */
  contentType?: string
  /** Default: `application/json`. */
  accept?: string
  signal?: AbortSignal
  timeoutMs?: number
  /** Of a string in the answer, bytes: what is longer is cut. Default: no limit. */
  longestString?: number
  /** Which members of the answer are read at all. Default: all. */
  keeps?: Keeps
}

/** `object`: the resource; of a BOOKMARK only its `metadata.resourceVersion`. */
export interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  object: T
}

export interface WatchCall {
  query: Query
  /** Default: `application/json`. */
  accept?: string
  signal: AbortSignal
  /** Ms without a byte after which the connection counts as dead. */
  silentMs: number
  /** Which members of the events are read at all. Default: all. */
  keeps?: Keeps
  /** The API server accepted the watch. */
  onOpen?: () => void
}

export interface ApiServerOptions {
  connectMs?: number
  /** Until an answer is complete, unless asked otherwise. */
  answerMs?: number
  /** Told of each request that leaves. */
  onRequest?: (method: string, path: string, query: Query) => void
}

export class ApiServer {
  readonly #access: ClusterAccess
  readonly #options: ApiServerOptions
  #pool: { readonly made: string; readonly agent: Dispatcher } | undefined

  constructor(access: ClusterAccess, options: ApiServerOptions = {}) {
    this.#access = access
    this.#options = options
  }

  /** The parsed answer. Rejects with ApiError, or with the reason of `signal` when that is aborted. */
  async request<T>(method: Dispatcher.HttpMethod, path: string, call: Call = {}): Promise<T> {
    const { signal, timeoutMs = this.#options.answerMs ?? ANSWER_MS } = call
    const deadline = AbortSignal.timeout(timeoutMs)
    const signals = signal ? AbortSignal.any([signal, deadline]) : deadline
    return this.#guarded(`${method} ${path}`, signals, async () => {
      const answer = await this.#send(method, path, call, { signal: signals })
      return JSON.parse(await textOf(answer.body, call)) as T
    })
  }

  /**
   * Events until the API server ends the watch. Rejects with ApiError: refused (the status), an error among the events (its
   * code), or no connection, a broken or a silent one (0).
   */
  async *watch<T>(
    path: string,
    { query, accept, signal, silentMs, keeps, onOpen }: WatchCall,
  ): AsyncGenerator<WatchEvent<T>> {
    const what = `watch ${path}`
    const timing = { signal, bodyTimeout: silentMs, headersTimeout: ANSWER_MS }
    const answer = await this.#guarded(what, signal, () =>
      this.#send('GET', path, { query: { ...query, watch: true }, ...(accept && { accept }) }, timing),
    )
    onOpen?.()
    const bytes = keeps === undefined ? answer.body : withMembers(answer.body, keeps)
    const events = jsonLines(bytes)[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await this.#guarded(what, signal, () => orSilence(events.next(), silentMs))
        if (next.done) return
        const event = next.value as WatchEvent<T> | { type: 'ERROR'; object: unknown }
        if (event.type === 'ERROR') throw inBandError(what, event.object)
        yield event
      }
    } finally {
      answer.body.on('error', () => {}).destroy()
    }
  }

  /** Connections are closed; running requests fail. One that is still being opened is not waited for. */
  close(): void {
    this.#pool?.agent.destroy().catch(() => {})
  }

  async #send(
    method: Dispatcher.HttpMethod,
    path: string,
    { query = {}, body, contentType = 'application/json', accept = 'application/json' }: Call,
    timing: Partial<Dispatcher.RequestOptions>,
  ): Promise<Dispatcher.ResponseData> {
    const { agent, headers, url } = await this.#prepare(path)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    this.#options.onRequest?.(method, path, query)
    const answer = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      headers: { ...headers, accept, ...(body === undefined ? {} : { 'content-type': contentType }) },
      body: body === undefined ? null : JSON.stringify(body),
      ...timing,
    })
    if (answer.statusCode < 300) return answer
    const retryAfter = answer.headers['retry-after']
    const text = await answer.body.text()
    throw refusal(`${method} ${path}`, answer.statusCode, text, retryAfter?.toString())
  }

  async #prepare(path: string) {
    const { server, headers, options } = await this.#access.connection()
    const url = new URL(server.replace(/\/$/, '') + path)
    return { agent: this.#agent(options), headers: { 'user-agent': 'penstock-operator', ...headers }, url }
  }

  /** The same one until a certificate, key or CA was exchanged. */
  #agent(connection: DispatcherOptions): Dispatcher {
    const made = JSON.stringify(connection)
    if (this.#pool?.made !== made) {
      // Its running requests, watches among them, end in their own time.
      void this.#pool?.agent.close()
      this.#pool = { made, agent: agentFor(connection, this.#options.connectMs ?? CONNECT_MS) }
    }
    return this.#pool.agent
  }

  /** undici looks at a signal only once the connection stands, which may take its whole time: here it counts at once. */
  async #guarded<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const aborted = Promise.withResolvers<never>()
    const abort = () => aborted.reject(signal.reason)
    signal.addEventListener('abort', abort)
    try {
      if (signal.aborted) throw signal.reason
      return await Promise.race([work(), aborted.promise])
    } catch (error) {
      if (error instanceof ApiError || isOwnReason(error, signal)) throw error
      throw new ApiError(`${what}: ${error instanceof Error ? error.message : error}`, 0, { cause: error })
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }
}

function textOf(
  body: Dispatcher.ResponseData['body'],
  { longestString = Number.POSITIVE_INFINITY, keeps }: Call,
): Promise<string> {
  const bytes = keeps === undefined ? body : withMembers(body, keeps)
  if (longestString < Number.POSITIVE_INFINITY) return withShortStrings(bytes, longestString)
  return keeps === undefined ? body.text() : text(bytes)
}

/** undici's own text for it speaks of its own parts. */
function orSilence<T>(next: Promise<T>, silentMs: number): Promise<T> {
  return next.catch((cause: unknown) => {
    if ((cause as { code?: string }).code !== 'UND_ERR_BODY_TIMEOUT') throw cause
    throw new Error(`silent for ${silentMs} ms`, { cause })
  })
}

/** The caller's, which it gets back as it gave it; not the end of the time for an answer. */
function isOwnReason(error: unknown, signal: AbortSignal): boolean {
  return (
    signal.aborted &&
    error === signal.reason &&
    !(error instanceof DOMException && error.name === 'TimeoutError')
  )
}

function agentFor(connection: DispatcherOptions, timeout: number): Dispatcher {
  const keepAliveTimeout = KEEP_ALIVE_MS
  switch (connection.type) {
    case 'none':
      return new Agent({ connect: { timeout }, keepAliveTimeout })
    case 'agent':
      return new Agent({ connect: { ...(connection.connect as object), timeout }, keepAliveTimeout })
    case 'proxy':
      return new ProxyAgent({
        uri: connection.uri,
        requestTls: { ...connection.requestTls, timeout } as ProxyAgent.Options['requestTls'],
        keepAliveTimeout,
      })
    case 'socks':
      throw new Error('a SOCKS proxy in the kubeconfig is not supported')
  }
}
