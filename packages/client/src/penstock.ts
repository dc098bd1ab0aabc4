import createClient, { type Client } from 'openapi-fetch'
import type { components, paths } from './api.ts'
import { newestFirst, oldestFirst, type ReadPage } from './dead-letters.ts'
import { RefusedError } from './errors.ts'
import { repeatingFetch } from './repeating-fetch.ts'
import { RETRIES, type RetryPolicy } from './retry.ts'
import { type WebhookOptions, webhookOf } from './webhook.ts'

export type Schemas = components['schemas']

export interface PenstockOptions {
  /** Base address of the service, such as `http://127.0.0.1:8080`. */
  readonly url: string
  /** For management; ingest needs none, and is sent none. */
  readonly apiKey?: string
  /** Default: 6 attempts, pauses of 0.5 to 16 s. */
  readonly retries?: Partial<RetryPolicy>
  /** For one attempt, its answer included; ms. Default 20,000: the service may need 15 s for a webhook. */
  readonly timeoutMs?: number
  /** Default: the `fetch` of the platform. */
  readonly fetch?: (request: Request) => Promise<Response>
}

export interface Ingested extends Pick<Schemas['Accepted'], 'messageId' | 'itemId'> {
  /** Its original is still buffered; this one costs nothing and is not delivered. */
  readonly duplicate: boolean
}

/** Which buffer takes a webhook. */
export interface Place {
  readonly projectId: string
  readonly bufferId: string
}

const TIMEOUT_MS = 20_000
/** The most that one answer has. */
const DEAD_LETTERS = 500
const RECORDS = 100

/** The service, for a program. Throws a TypeError for an address that is none. */
export function createPenstock(options: PenstockOptions): Penstock {
  return new Penstock(options)
}

/** Methods reject with a RefusedError or a NoAnswerError. */
export class Penstock {
  /**
   * Every operation of the API, typed: it resolves with `data` or `error`. What reads is sent again when it failed, and so
   * is a webhook with the header `X-Idempotency-Key`; nothing else is.
   */
  readonly api: Client<paths>
  /** Every attempt has the same id, wherever it stands. */
  readonly #repeated: (request: Request) => Promise<Response>
  #customerId: Promise<string> | undefined

  constructor({ url, apiKey, retries, timeoutMs = TIMEOUT_MS, fetch = globalThis.fetch }: PenstockOptions) {
    const repeating = {
      retries: { ...RETRIES, ...retries },
      timeoutMs,
      fetch: (request: Request) => fetch(request),
    }
    this.#repeated = repeatingFetch(repeating, () => true)
    this.api = createClient<paths>({
      baseUrl: requireAddress(url),
      // A redirect would carry the key to another place.
      redirect: 'error',
      fetch: repeatingFetch(repeating),
      pathSerializer: pathOf,
      ...(apiKey !== undefined && { headers: { 'X-API-Key': apiKey } }),
    })
  }

  /** Customer, role, projects and credits of the key. */
  async whoAmI(signal?: AbortSignal): Promise<Schemas['WhoAmI']> {
    return must('GET /v1/admin/whoami', await this.api.GET('/v1/admin/whoami', withSignal(signal)))
  }

  /**
   * Sends a webhook until it is stored. `payload`: bytes go as they are, anything else as its JSON. Rejects with a TypeError
   * for what cannot be sent. After a NoAnswerError it may be stored: send it again with the same message id.
   */
  async ingest(
    { projectId, bufferId }: Place,
    payload: unknown,
    options: WebhookOptions & { readonly signal?: AbortSignal } = {},
  ): Promise<Ingested> {
    const { body, headers } = webhookOf(payload, options)
    const result = await this.api.POST('/v1/ingest/{projectId}/{bufferId}', {
      params: { path: { projectId, bufferId } },
      body: {},
      bodySerializer: () => body,
      headers: { 'X-API-Key': null, ...headers },
      fetch: this.#repeated,
      ...withSignal(options.signal),
    })
    const { messageId, itemId, duplicate = false } = must(`POST /v1/ingest/${projectId}/${bufferId}`, result)
    return { messageId, itemId, duplicate }
  }

  /** All dead letters, oldest first, of one buffer or of all. A caller may remove what it gets. */
  async *deadLetters(filter: { readonly bufferId?: string } = {}): AsyncGenerator<Schemas['DlqItem'], void> {
    yield* oldestFirst(this.#pages(filter, DEAD_LETTERS))
  }

  /** The same, newest first. `pageSize`: 1 to 500, of one request, for a caller that ends early. */
  async *newestDeadLetters(
    filter: { readonly bufferId?: string } = {},
    pageSize = DEAD_LETTERS,
  ): AsyncGenerator<Schemas['DlqItem'], void> {
    yield* newestFirst(this.#pages(filter, pageSize))
  }

  #pages(filter: { readonly bufferId?: string }, limit: number): ReadPage {
    return async (cursor) => {
      const behind = cursor === undefined ? {} : { cursor }
      const query = { ...filter, ...behind, customerId: await this.customerId(), limit }
      return must('GET /v1/dlq', await this.api.GET('/v1/dlq', { params: { query } }))
    }
  }

  /** What was done to the account, newest first, page by page. `since`, `until`: Unix milliseconds. */
  async *auditRecords(
    range: { readonly since?: number; readonly until?: number } = {},
  ): AsyncGenerator<Schemas['AuditRecord'], void> {
    let cursor: string | null = null
    do {
      const query: Record<string, unknown> = { ...range, limit: RECORDS, ...(cursor !== null && { cursor }) }
      const result = await this.api.GET('/v1/admin/audit', { params: { query } })
      const page: Schemas['AuditPage'] = must('GET /v1/admin/audit', result)
      yield* page.records
      cursor = page.nextCursor
    } while (cursor !== null)
  }

  async *buffers(filter: { readonly projectId?: string } = {}): AsyncGenerator<Schemas['Buffer'], void> {
    const query = { ...filter, customerId: await this.customerId() }
    yield* must('GET /v1/admin/buffers', await this.api.GET('/v1/admin/buffers', { params: { query } }))
  }

  async *projects(): AsyncGenerator<Schemas['Project'], void> {
    const query = { customerId: await this.customerId() }
    yield* must('GET /v1/admin/projects', await this.api.GET('/v1/admin/projects', { params: { query } }))
  }

  /** Whom the key belongs to; asked once. Lists need it. */
  customerId(): Promise<string> {
    this.#customerId ??= this.whoAmI().then(
      ({ customerId }) => customerId,
      (error) => {
        this.#customerId = undefined
        throw error
      },
    )
    return this.#customerId
  }
}

/** The body of a success; throws a RefusedError for a refusal. `request`: for its message. */
export function must<T>(
  request: string,
  { data, error, response }: { data?: T; error?: unknown; response: Response },
): T {
  if (!response.ok) throw new RefusedError(request, response, error)
  return data as T
}

function withSignal(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal }
}

function requireAddress(url: string): string {
  const { protocol, username, search, hash } = URL.canParse(url) ? new URL(url) : ({ protocol: '' } as URL)
  const isUsable = /^https?:$/.test(protocol) && !username && !search && !hash
  if (!isUsable)
    throw new TypeError('url must be an http or https address without credentials, query or fragment')
  return url
}

/** An id of dots would name another path. */
function pathOf(path: string, ids: Record<string, unknown>): string {
  return path.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const id = String(ids[name])
    if (/^\.{0,2}$/.test(id)) throw new TypeError(`${name} must not be empty, "." or ".."`)
    return encodeURIComponent(id)
  })
}
