import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Context, Next } from 'koa'
import type { AuditTrail } from '../audit/trail.ts'
import type { HeaderLookup } from '../domain/extract.ts'
import { isIdentifier } from '../domain/identifiers.ts'
import { type Ingest, isAnswer } from '../ingest/accept.ts'
import { answers, type IngestAnswer } from '../ingest/answer.ts'
import type { IngestTelemetry } from '../ingest/ports.ts'
import type { IngestHead } from '../ingest/request.ts'
import type { Clock } from '../runtime/clock.ts'
import { loopTurn } from '../runtime/loop-turn.ts'
import { ANSWER_HEADERS } from './answer-headers.ts'
import { judgeHead, type NoBody, readJudgedBody } from './body.ts'
import type { BodyShares } from './body-shares.ts'
import { answerEarly, refuseUnread } from './early-answer.ts'
import type { Gate } from './listener.ts'
import { originOf } from './origin.ts'
import { REQUEST_ID_HEADER, requestIdOf } from './request-id.ts'
import type { Handler } from './turns.ts'

/**
 * `POST /v1/ingest/{projectId}/{bufferId}` (docs/reference/api.md, "Ingest"). This is the path that load comes in by:
 * the answer is one string with its length, and neither request nor answer goes through Koa, which costs each some
 * microseconds (docs/performance/notes.md). What is no plain POST, and what goes wrong, is the application's.
 */

export interface IngestRouteOptions {
  ingest: Pick<Ingest, 'accept' | 'judgeHead'>
  clock: Clock
  gate: Gate
  /** Largest body, bytes (`PENSTOCK_MAX_BODY_BYTES`). */
  maxBodyBytes: number
  /** Of the bodies that arrive or wait for their answer (`PENSTOCK_MAX_BODIES_BYTES`). */
  bodies: BodyShares
  /** Told of what is answered without `ingest`. */
  telemetry: Pick<IngestTelemetry, 'answered'>
  /** Told of keys that are not good. */
  audit: Pick<AuditTrail, 'refused'>
}

const NO_BODY: Uint8Array = Buffer.alloc(0)
const PREFIX = '/v1/ingest/'
/** As the OpenAPI document has it. */
const ROUTE = '/v1/ingest/{projectId}/{bufferId}'

export class IngestRoute {
  readonly #options: IngestRouteOptions
  /** Errors that nobody meant for the caller, on their way to the application. */
  readonly #failed = new WeakMap<IncomingMessage, { requestId: string; error: unknown }>()

  constructor(options: IngestRouteOptions) {
    this.#options = options
  }

  /** Answers webhooks, and leaves all else to `application`, in which `middleware` stands. */
  before(application: Handler): Handler {
    return (req, res) => {
      if (req.method !== 'POST' || !req.url?.startsWith(PREFIX)) return application(req, res)
      const path = pathOf(req.url)
      const requestId = requestIdOf(req.headers['x-request-id'])
      return this.#answer(req, res, path, requestId).catch((error: unknown) => {
        this.#failed.set(req, { requestId, error })
        return application(req, res)
      })
    }
  }

  /** Other methods, targets in absolute form, and errors. */
  readonly middleware = async (ctx: Context, next: Next): Promise<void> => {
    if (!ctx.path.startsWith(PREFIX)) return next()
    const failure = this.#failed.get(ctx.req)
    const requestId = failure?.requestId ?? requestIdOf(ctx.req.headers['x-request-id'])
    ctx.state.requestId = requestId
    if (failure) throw failure.error
    if (ctx.method !== 'POST') return otherMethod(ctx, parsePath(ctx.path) !== null)
    ctx.respond = false
    await this.#answer(ctx.req, ctx.res, ctx.path, requestId)
  }

  /** What the head refuses keeps no body. A body counts until the answer, for so long its bytes are in memory. */
  async #answer(req: IncomingMessage, res: ServerResponse, path: string, requestId: string): Promise<void> {
    const { ingest, gate, maxBodyBytes, bodies } = this.#options
    const unread = judgeHead(req, maxBodyBytes)
    if (unread !== null) return this.#refuseBody(req, res, unread, requestId, null)
    const address = parsePath(path)
    if (address === null) return this.#refuseAddress(req, res, requestId)
    const { projectId, bufferId } = address
    // One object for both: this is the path of all load.
    const request = { requestId, projectId, bufferId, header: headerOf(req.headers), body: NO_BODY }
    const turn = loopTurn()
    const judging = ingest.judgeHead(request)
    const judged = judging instanceof Promise ? await judging : judging
    if (isAnswer(judged)) {
      if (judged === answers.keyInvalid) this.#tellKey(req, address)
      return this.#refuseHead(req, res, judged, requestId)
    }
    const room = bodies.of(judged.buffer.customerId)
    const body = await readJudgedBody(req, res, maxBodyBytes, room)
    if (typeof body === 'string') return this.#refuseBody(req, res, body, requestId, request)
    try {
      request.body = body
      // Most bodies come with their heads: what was judged is true in the same turn.
      const answer = await ingest.accept(request, loopTurn() === turn ? judged : undefined)
      if (answer === answers.keyInvalid) this.#tellKey(req, address)
      send(res, answer, gate, requestId)
    } finally {
      room.giveBack(body.length)
    }
  }

  #tellKey(req: IncomingMessage, target: { projectId: string; bufferId: string }): void {
    this.#options.audit.refused({
      place: 'ingest',
      credential: 'key',
      secret: String(req.headers['x-api-key']),
      method: 'POST',
      route: ROUTE,
      target,
      from: originOf(req),
    })
  }

  #refuseAddress(req: IncomingMessage, res: ServerResponse, requestId: string): Promise<void> {
    this.#options.telemetry.answered(answers.bufferNotFound, null)
    return this.#refuseHead(req, res, answers.bufferNotFound, requestId)
  }

  #refuseHead(
    req: IncomingMessage,
    res: ServerResponse,
    answer: IngestAnswer,
    requestId: string,
  ): Promise<void> {
    const { clock, gate } = this.#options
    return refuseUnread(clock, req, res, { ...answer, requestId }, () => send(res, answer, gate, requestId))
  }

  /** `head`: of a buffer that takes webhooks; null: nobody looked. */
  #refuseBody(
    req: IncomingMessage,
    res: ServerResponse,
    reason: NoBody,
    requestId: string,
    head: IngestHead | null,
  ): void {
    if (reason === 'aborted') return
    const answer = BODY_REFUSALS[reason]
    this.#options.telemetry.answered(answer, head)
    answerEarly(this.#options.clock, req, res, { ...answer, requestId })
  }
}

const BODY_REFUSALS = { 'too-large': answers.tooLarge, encoded: answers.encoded, busy: answers.bodiesBusy }

/** Of a target in origin form, as Koa takes it. */
function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return end < 0 ? target : target.slice(0, end)
}

/** Of a path below `PREFIX`. null: no buffer can have this address, whatever it decodes to. */
function parsePath(path: string): { projectId: string; bufferId: string } | null {
  const slash = path.indexOf('/', PREFIX.length)
  if (slash < 0 || path.includes('/', slash + 1)) return null
  const projectId = decode(path.slice(PREFIX.length, slash))
  const bufferId = decode(path.slice(slash + 1))
  return projectId === null || bufferId === null ? null : { projectId, bufferId }
}

function decode(segment: string): string | null {
  if (!segment.includes('%')) return isIdentifier(segment) ? segment : null
  try {
    const decoded = decodeURIComponent(segment)
    return isIdentifier(decoded) ? decoded : null
  } catch {
    return null
  }
}

function otherMethod(ctx: Context, exists: boolean): void {
  if (!exists) {
    ctx.status = 404
    return
  }
  ctx.status = ctx.method === 'OPTIONS' ? 204 : 405
  ctx.set('Allow', 'POST, OPTIONS')
}

/** Own properties only: `fallbackHeader` may be any token, `constructor` included. */
function headerOf(headers: IncomingHttpHeaders): HeaderLookup {
  return (name) => {
    const lower = name.toLowerCase()
    const value = Object.hasOwn(headers, lower) ? headers[lower] : undefined
    return typeof value === 'object' ? value.join(', ') : value
  }
}

/** As `writeHead` takes it. Spelt out, for a list that grows costs each answer a microsecond. */
function headOf({ type, body }: IngestAnswer, requestId: string): string[] {
  const [cache, noStore, options, noSniff] = ANSWER_HEADERS
  const length = String(Buffer.byteLength(body))
  const id = REQUEST_ID_HEADER
  return ['Content-Type', type, 'Content-Length', length, cache, noStore, options, noSniff, id, requestId]
}

function send(res: ServerResponse, answer: IngestAnswer, gate: Gate, requestId: string): void {
  const head = headOf(answer, requestId)
  if (answer.retryAfter !== undefined) head.push('Retry-After', String(answer.retryAfter))
  if (gate.closing) head.push('Connection', 'close')
  res.writeHead(answer.status, head)
  res.end(answer.body)
}
