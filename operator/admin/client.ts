/**
 * Client of the management API (docs/reference/api.md, "Buffers"): one request and its whole answer within a
 * deadline, no redirect followed, no more of a body read than a buffer can have. An API key goes out with each call
 * and is kept nowhere; no error repeats it.
 */

import { Agent, type Dispatcher, errors as failures, request } from 'undici'
import { errors } from '../../internal/domain/errors.ts'
import { isJsonObject } from '../../internal/domain/merge-patch.ts'
import type { Buffer as BufferAnswer } from '../../internal/domain/model.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { messageOf } from '../../internal/runtime/thrown.ts'
import { WORKERS } from '../controller/turns.ts'
import {
  AdminError,
  type AdminErrorKind,
  type JsonBody,
  type KeyHolder,
  type StatesAnswer,
} from '../reconcile/ports.ts'
import type { ListingAdmin } from './crowd-reads.ts'

export interface AdminClientOptions {
  /** Base address; a path in it is kept. */
  url: string
  /** PEM of the authorities to trust instead of the machine's. */
  ca?: string
  userAgent: string
  clock: Pick<Clock, 'now'>
  /** For connecting, sending and reading together; default 10 s. */
  timeoutMs?: number
}

export interface AdminClient extends ListingAdmin {
  /** Resolves at once, or when something changed after the tag `after`, or after `waitSeconds`. Rejects as the others. */
  states(
    key: string,
    query: { after?: string; waitSeconds: number },
    signal: AbortSignal,
  ): Promise<StatesAnswer>
  close(): Promise<void>
}

/** Far above the largest buffer: 50 headers of 4 KB. */
const ANSWER_BYTES = 1_048_576
/** Of a list, and of the states of buffers. A list that is larger is as none. */
const LIST_BYTES = 16 * ANSWER_BYTES
/** Of the service's own words that are passed on. */
const WORDS = 1_024
const MOST_RETRY_AFTER_MS = 300_000

const KINDS: Readonly<Record<number, AdminErrorKind>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'forbidden',
  409: 'exists',
  429: 'throttled',
}

class TooMuchError extends AdminError {
  constructor() {
    super('unavailable', 'the admin API answered far too much')
  }
}

interface Answer {
  readonly status: number
  /** undefined: it is no JSON. */
  readonly body: unknown
  readonly retryAfterMs: number | undefined
}

export function createAdminClient(options: AdminClientOptions): AdminClient {
  const { url, ca, userAgent, clock, timeoutMs = 10_000 } = options
  const base = url.endsWith('/') ? url : `${url}/`
  const connect = { timeout: timeoutMs, ...(ca !== undefined && { ca }) }
  const dispatcher = new Agent({
    connect,
    // One for each pass: those of one account that take long keep no others waiting.
    connections: WORKERS,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
  // What tells of states has its own: it must not keep the others waiting for a connection.
  const waiting = new Agent({ connect, bodyTimeout: timeoutMs })
  const buffers = new URL('v1/admin/buffers', base).href
  const states = new URL('v1/admin/buffer-states', base).href
  const whoami = new URL('v1/admin/whoami', base).href
  const named = (bufferId: string) => `${buffers}/${encodeURIComponent(bufferId)}`

  async function call(
    method: Dispatcher.HttpMethod,
    address: string,
    key: string,
    signal: AbortSignal,
    { body, waitMs, most = ANSWER_BYTES }: { body?: JsonBody; waitMs?: number; most?: number } = {},
  ): Promise<Answer> {
    const limitMs = timeoutMs + (waitMs ?? 0)
    const deadline = AbortSignal.timeout(limitMs)
    const headers = { 'x-api-key': key, 'user-agent': userAgent, accept: 'application/json' }
    try {
      const response = await request(address, {
        dispatcher: waitMs === undefined ? dispatcher : waiting,
        headersTimeout: limitMs,
        method,
        signal: AbortSignal.any([signal, deadline]),
        headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
      })
      return await answerOf(response, clock.now(), most)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (error instanceof AdminError) throw error
      const why = deadline.aborted ? `no answer within ${limitMs} ms` : describe(error)
      throw new AdminError('unavailable', `the admin API cannot be reached: ${why}`, { cause: error })
    }
  }

  return {
    async read(key, bufferId, signal) {
      const answer = await call('GET', named(bufferId), key, signal)
      return isAbsence(answer) ? undefined : bufferOf(answer, 200, bufferId)
    },
    async list(key, customerId, signal) {
      const address = `${buffers}?${new URLSearchParams({ customerId })}`
      const answer = await call('GET', address, key, signal, { most: LIST_BYTES }).catch((error: unknown) => {
        if (error instanceof TooMuchError) return undefined
        throw error
      })
      if (answer === undefined) return undefined
      if (answer.status !== 200 || !Array.isArray(answer.body)) throw refusalOf(answer)
      return answer.body.map((body) => bufferOf({ ...answer, body }, 200))
    },
    async create(key, body, signal) {
      return bufferOf(await call('POST', buffers, key, signal, { body }), 201, String(body.bufferId))
    },
    async update(key, bufferId, patch, signal) {
      return bufferOf(await call('PATCH', named(bufferId), key, signal, { body: patch }), 200, bufferId)
    },
    async remove(key, bufferId, signal) {
      const answer = await call('DELETE', named(bufferId), key, signal)
      if (answer.status !== 204 && !isAbsence(answer)) throw refusalOf(answer)
      return answer.status === 204
    },
    async holder(key, signal) {
      return holderOf(await call('GET', whoami, key, signal))
    },
    async states(key, { after, waitSeconds }, signal) {
      const query = new URLSearchParams({
        waitSeconds: String(waitSeconds),
        ...(after !== undefined && { after }),
      })
      const answer = await call('GET', `${states}?${query}`, key, signal, {
        waitMs: waitSeconds * 1_000,
        most: LIST_BYTES,
      })
      return statesOf(answer)
    },
    async close() {
      await Promise.all([dispatcher.destroy(), waiting.destroy()])
    },
  }
}

async function answerOf(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  now: number,
  most: number,
): Promise<Answer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > most) throw new TooMuchError()
    chunks.push(chunk)
  }
  return {
    status: statusCode,
    body: parse(Buffer.concat(chunks).toString('utf8')),
    retryAfterMs: retryAfterOf(headers['retry-after'], now),
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Seconds or a date (RFC 9110, section 10.2.3); at most five minutes, whatever it says. */
function retryAfterOf(header: string | string[] | undefined, now: number): number | undefined {
  if (typeof header !== 'string') return undefined
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MOST_RETRY_AFTER_MS)
}

/** Any server answers 404: only the service's own word for it says that a buffer is not there. */
function isAbsence({ status, body }: Answer): boolean {
  return status === 404 && wordsOf(body) === errors.bufferNotFound.error
}

/** 409 also says that an id is taken. */
function isFull({ status, body }: Answer): boolean {
  const { code, status: full } = errors.bufferLimit
  return status === full && isJsonObject(body) && body.code === code
}

/** No fault of the key: another one of the account is answered the same. */
function isSuspension({ status, body }: Answer): boolean {
  const { code, status: suspended } = errors.accountSuspended
  return status === suspended && isJsonObject(body) && body.code === code
}

/** `bufferId`: of the one that was asked for. */
function bufferOf(answer: Answer, expected: number, bufferId?: string): BufferAnswer {
  if (answer.status !== expected) throw refusalOf(answer)
  const { body } = answer
  const complete =
    isJsonObject(body) &&
    typeof body.bufferId === 'string' &&
    body.bufferId === (bufferId ?? body.bufferId) &&
    typeof body.projectId === 'string' &&
    typeof body.enabled === 'boolean' &&
    typeof body.consecutiveDlqCount === 'number' &&
    isJsonObject(body.delivery) &&
    isJsonObject(body.groupKey)
  if (!complete) throw new AdminError('unavailable', 'the admin API answered something that is no buffer')
  return body as unknown as BufferAnswer
}

function holderOf(answer: Answer): KeyHolder {
  if (answer.status !== 200) throw refusalOf(answer)
  const { body } = answer
  const complete =
    isJsonObject(body) &&
    typeof body.customerId === 'string' &&
    (body.projects === null || Array.isArray(body.projects))
  if (!complete) throw new AdminError('unavailable', 'the admin API does not say whose the API key is')
  return body as unknown as KeyHolder
}

function statesOf(answer: Answer): StatesAnswer {
  if (answer.status !== 200) throw refusalOf(answer)
  const { body } = answer
  const complete = isJsonObject(body) && typeof body.tag === 'string' && Array.isArray(body.buffers)
  if (!complete) throw new AdminError('unavailable', 'the admin API does not tell how buffers stand')
  return body as unknown as StatesAnswer
}

function kindOf(answer: Answer): AdminErrorKind | undefined {
  if (isAbsence(answer)) return 'absent'
  if (isSuspension(answer)) return 'suspended'
  return isFull(answer) ? 'full' : KINDS[answer.status]
}

function refusalOf(answer: Answer): AdminError {
  const { status, retryAfterMs } = answer
  const words = wordsOf(answer.body)
  const kind = kindOf(answer)
  if (kind !== undefined && words !== undefined) {
    return new AdminError(kind, words, retryAfterMs === undefined ? {} : { retryAfterMs })
  }
  const text =
    words === undefined ? `the admin API answered ${status}` : `the admin API answered ${status}: ${words}`
  return new AdminError(
    kind === 'throttled' ? kind : 'unavailable',
    text,
    retryAfterMs === undefined ? {} : { retryAfterMs },
  )
}

/** `error` of an error body, with `message` where a role is missing. */
function wordsOf(body: unknown): string | undefined {
  if (!isJsonObject(body) || typeof body.error !== 'string') return undefined
  const words = typeof body.message === 'string' ? `${body.error}: ${body.message}` : body.error
  return words.slice(0, WORDS)
}

/** The system's own words; a failure of several addresses has its reasons inside. */
function describe(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return describe(error.errors[0])
  if (error instanceof failures.HeadersTimeoutError || error instanceof failures.BodyTimeoutError)
    return 'no answer in time'
  return messageOf(error)
}
