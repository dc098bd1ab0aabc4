import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Context, Next } from 'koa'
import type { HeaderLookup } from '../domain/extract.ts'
import { isIdentifier } from '../domain/identifiers.ts'
import type { Ingest } from '../ingest/accept.ts'
import { answers, type IngestAnswer } from '../ingest/answer.ts'
import type { Clock } from '../runtime/clock.ts'
import { answerEarly, readBody } from './body.ts'
import type { Gate } from './listener.ts'

/**
 * `POST /v1/ingest/{projectId}/{bufferId}` (specification, "Ingest"). The answer is written past Koa as one
 * string with its length: this is the path that load comes in by.
 */

export interface IngestRouteOptions {
  ingest: Pick<Ingest, 'accept'>
  clock: Clock
  gate: Gate
  /** Largest body, bytes (`PENSTOCK_MAX_BODY_BYTES`). */
  maxBodyBytes: number
}

const PREFIX = '/v1/ingest/'
const PATH = /^\/v1\/ingest\/([^/]+)\/([^/]+)$/

export function ingestRoute(options: IngestRouteOptions): (ctx: Context, next: Next) => Promise<void> {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(PREFIX)) return next()
    const address = parsePath(ctx.path)
    if (ctx.method !== 'POST') return otherMethod(ctx, address !== null)
    const { req, res } = ctx
    const body = await readBody(req, res, options.maxBodyBytes)
    if (typeof body === 'string') {
      ctx.respond = false
      return refuseBody(options.clock, req, res, body)
    }
    const answer =
      address === null
        ? answers.bufferNotFound
        : await options.ingest.accept({ ...address, header: headerOf(req.headers), body })
    ctx.respond = false
    send(res, answer, options.gate)
  }
}

/** null: no buffer can have this address, whatever it decodes to. */
function parsePath(path: string): { projectId: string; bufferId: string } | null {
  const match = PATH.exec(path)
  const projectId = decode(match?.[1])
  const bufferId = decode(match?.[2])
  return projectId === null || bufferId === null ? null : { projectId, bufferId }
}

function decode(segment: string | undefined): string | null {
  if (segment === undefined) return null
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

function refuseBody(
  clock: Clock,
  req: IncomingMessage,
  res: ServerResponse,
  reason: 'too-large' | 'encoded' | 'aborted',
): void {
  if (reason === 'aborted') return
  const { status, body } = reason === 'too-large' ? answers.tooLarge : answers.encoded
  answerEarly(clock, req, res, status, body)
}

/** Own properties only: `fallbackHeader` may be any token, `constructor` included. */
function headerOf(headers: IncomingHttpHeaders): HeaderLookup {
  return (name) => {
    const lower = name.toLowerCase()
    const value = Object.hasOwn(headers, lower) ? headers[lower] : undefined
    return typeof value === 'object' ? value.join(', ') : value
  }
}

function send(res: ServerResponse, answer: IngestAnswer, gate: Gate): void {
  const head = ['Content-Type', answer.type, 'Content-Length', String(Buffer.byteLength(answer.body))]
  if (answer.retryAfter !== undefined) head.push('Retry-After', String(answer.retryAfter))
  if (gate.closing) head.push('Connection', 'close')
  res.writeHead(answer.status, head)
  res.end(answer.body)
}
