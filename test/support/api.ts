/** A caller of the service over HTTP: management as one customer's owner, and ingest as anybody. */
import { randomUUID } from 'node:crypto'
import type { ApiKeyRecord, Buffer as BufferResource, DlqItem } from '../../internal/domain/model.ts'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body parsed as JSON; throws when it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the test is about.
  json(): any
}

/** Answer of an accepted ingest request. */
export interface Accepted {
  status: 'accepted'
  messageId: string
  itemId: string
  duplicate?: true
}

type Deep<T> = { [K in keyof T]?: T[K] extends object | undefined ? Deep<T[K]> : T[K] }

export type BufferFields = Deep<BufferResource> & { delivery: { url: string } }

/** A webhook as a sender has it: text and bytes go as they are, anything else as its JSON. */
export type Payload = string | Uint8Array | object

export class Api {
  readonly #url: () => string
  /** undefined: no credential is sent. */
  readonly key: string | undefined
  readonly customerId: string

  /** `key` undefined: no credential is sent. */
  constructor(url: () => string, key: string | undefined, customerId: string) {
    this.#url = url
    this.key = key
    this.customerId = customerId
  }

  /** The same customer with another key, or without one. */
  withKey(key: string | undefined): Api {
    return new Api(this.#url, key, this.customerId)
  }

  /** Any answer. Rejects only when there is none. */
  async request(
    method: string,
    path: string,
    body?: Payload,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await fetch(`${this.#url()}${path}`, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(this.key !== undefined && { 'x-api-key': this.key }),
        ...headers,
      },
      ...(body !== undefined && { body: bytesOf(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) }
  }

  /** The body of an answer with exactly this status; rejects with any other. */
  async expect<T = unknown>(status: number, method: string, path: string, body?: Payload): Promise<T> {
    const answer = await this.request(method, path, body)
    if (answer.status !== status)
      throw new Error(`${method} ${path} answered ${answer.status}, not ${status}: ${answer.text}`)
    return (answer.text === '' ? undefined : answer.json()) as T
  }

  /** A project of a new name; answers it. */
  async createProject(projectId = `project-${randomUUID()}`): Promise<string> {
    await this.expect(201, 'POST', '/v1/admin/projects', { projectId, name: projectId })
    return projectId
  }

  /** Groups by `$.group` unless `fields` says otherwise. */
  createBuffer(projectId: string, bufferId: string, fields: BufferFields): Promise<BufferResource> {
    const defaults = { name: bufferId, groupKey: { mode: 'jsonpath', path: '$.group' } }
    return this.expect(201, 'POST', '/v1/admin/buffers', { ...defaults, ...fields, projectId, bufferId })
  }

  readBuffer(bufferId: string): Promise<BufferResource> {
    return this.expect(200, 'GET', `/v1/admin/buffers/${bufferId}`)
  }

  patchBuffer(bufferId: string, patch: Deep<BufferResource>): Promise<BufferResource> {
    return this.expect(200, 'PATCH', `/v1/admin/buffers/${bufferId}`, patch)
  }

  deleteBuffer(bufferId: string): Promise<void> {
    return this.expect(204, 'DELETE', `/v1/admin/buffers/${bufferId}`)
  }

  /** Any answer; without a credential unless `headers` hold one. */
  ingest(
    projectId: string,
    bufferId: string,
    payload: Payload,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return this.withKey(undefined).request('POST', `/v1/ingest/${projectId}/${bufferId}`, payload, headers)
  }

  /** Newest first. */
  deadLetters(bufferId: string): Promise<DlqItem[]> {
    return this.expect(200, 'GET', `/v1/dlq?customerId=${this.customerId}&bufferId=${bufferId}&limit=500`)
  }

  /** The stored batch of a dead letter, byte for byte. */
  async deadBatch(dlqId: string): Promise<string> {
    return (await this.request('GET', `/v1/dlq/${dlqId}/batch`)).text
  }

  credits(): Promise<{ credits: number; creditsUsedThisMonth: number }> {
    return this.expect(200, 'GET', '/v1/admin/credits')
  }

  async addCredits(amount: number): Promise<void> {
    await this.expect(200, 'POST', '/v1/admin/credits/add', { amount })
  }

  createKey(
    fields: { role?: string; projectIds?: string[] } = {},
  ): Promise<ApiKeyRecord & { secret: string }> {
    return this.expect(201, 'POST', '/v1/admin/api-keys', { name: 'a key', ...fields })
  }
}

function bytesOf(body: Payload): string | Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return body
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)
}
