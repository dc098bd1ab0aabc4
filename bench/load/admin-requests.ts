/** Requests of the management API, as a dashboard, an operator and some scripts send them. */
import { type Account, bufferIdOf, deadLetterIdOf, projectIdOf } from './account.ts'

export interface AdminRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  body?: object
}

type PathOf = (account: Account) => string

/** Path of every list and read, by the name that it has in the figures; each call names another entry. */
export const reads = {
  projects: (account) => `/v1/admin/projects?${whose(account)}`,
  project: (account) => `/v1/admin/projects/${anyProject(account)}`,
  'all buffers': (account) => `/v1/admin/buffers?${whose(account)}`,
  'buffers of a project': (account) => `/v1/admin/buffers?projectId=${anyProject(account)}&${whose(account)}`,
  buffer: (account) => `/v1/admin/buffers/${anyBuffer(account)}`,
  'dead letters (100)': (account) => `/v1/dlq?${whose(account)}`,
  'dead letters (500)': (account) => `/v1/dlq?limit=500&${whose(account)}`,
  'dead letters of a buffer': (account) => `/v1/dlq?bufferId=${anyBuffer(account)}&${whose(account)}`,
  'dead letter': (account) => `/v1/dlq/${anyDeadLetter(account)}?${whose(account)}`,
  'batch of a dead letter': (account) => `/v1/dlq/${anyDeadLetter(account)}/batch`,
  'API keys': () => '/v1/admin/api-keys',
  credits: () => '/v1/admin/credits',
  'credit transactions (50)': () => '/v1/admin/credits/transactions',
  'analytics summary': (account) => `/v1/analytics/summary?${whose(account)}`,
  'timeseries, 7 days': (account) => `/v1/analytics/timeseries?${whose(account)}`,
  'timeseries, 90 days': (account) => `/v1/analytics/timeseries?days=90&${whose(account)}`,
} satisfies Record<string, PathOf>

export type ReadName = keyof typeof reads

/** Of 100 requests; the other two create an API key and revoke it. */
const READS_OF_100: [ReadName, number][] = [
  ['buffer', 20],
  ['all buffers', 4],
  ['buffers of a project', 12],
  ['dead letters (100)', 8],
  ['dead letters of a buffer', 6],
  ['dead letter', 10],
  ['credits', 10],
  ['credit transactions (50)', 8],
  ['analytics summary', 8],
  ['timeseries, 7 days', 5],
  ['projects', 1],
]
const CHANGES_OF_100 = 6
const MIX = READS_OF_100.flatMap(([name, share]) => Array.from({ length: share }, () => name))
/** Coprime to 100: spreads the kinds over the turns. */
const STRIDE = 37

/** Turn by turn the same kinds of requests, evenly spread. */
export class AdminMix {
  readonly #account: Account
  readonly #keyIds: string[] = []

  constructor(account: Account) {
    this.#account = account
  }

  request(turn: number): AdminRequest {
    const place = (turn * STRIDE) % 100
    const read = MIX[place]
    if (read !== undefined) return { method: 'GET', path: reads[read](this.#account) }
    if (place < MIX.length + CHANGES_OF_100) return this.#change(turn)
    return place === 98 ? this.#createKey(turn) : this.#revokeKey()
  }

  /** Takes note of what was created. */
  answered({ method }: AdminRequest, body: Buffer): void {
    if (method === 'POST') this.#keyIds.push((JSON.parse(body.toString()) as { keyId: string }).keyId)
  }

  #change(turn: number): AdminRequest {
    const path = `/v1/admin/buffers/${anyBuffer(this.#account)}`
    return { method: 'PATCH', path, body: { name: `Changed in turn ${turn}` } }
  }

  #createKey(turn: number): AdminRequest {
    return { method: 'POST', path: '/v1/admin/api-keys', body: { name: `Turn ${turn}`, role: 'member' } }
  }

  /** None there: the one to revoke is still being created. */
  #revokeKey(): AdminRequest {
    const keyId = this.#keyIds.shift()
    const path = '/v1/admin/api-keys'
    return keyId === undefined ? { method: 'GET', path } : { method: 'DELETE', path: `${path}/${keyId}` }
  }
}

/** The text of a request. */
export function requestText(request: AdminRequest, url: URL, headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const body = request.body === undefined ? '' : JSON.stringify(request.body)
  const type = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `${request.method} ${request.path} HTTP/1.1\r\nHost: ${url.host}\r\n${lines.join('')}${type}\r\n${body}`
}

function whose({ customerId }: Account): string {
  return `customerId=${customerId}`
}

function anyProject(account: Account): string {
  return projectIdOf(account, anyBelow(account.projects))
}

function anyBuffer(account: Account): string {
  return bufferIdOf(account, anyBelow(account.buffers))
}

function anyDeadLetter(account: Account): string {
  return deadLetterIdOf(account, anyBelow(account.deadLetters))
}

function anyBelow(n: number): number {
  return Math.floor(Math.random() * n)
}
