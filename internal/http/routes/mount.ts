import { Router } from '@koa/router'
import type { Context } from 'koa'
import { errors, required, roleMissing, ServiceError } from '../../domain/errors.ts'
import type { Principal } from '../../domain/principal.ts'
import { mayPerform } from '../../domain/roles.ts'
import type { Clock } from '../../runtime/clock.ts'
import { ENTRIES_A_TURN, jsonInTurns } from '../../runtime/turns.ts'
import { type BodyBudget, type NoBody, readBody } from '../body.ts'
import { authenticate } from '../credential.ts'
import { answerEarly } from '../early-answer.ts'
import type { Authenticator } from '../ports.ts'
import { areIdentifiers, compileShape, createCompiler, type RequestShape } from './request-shape.ts'
import type { Call, Reply, Route } from './route.ts'

/**
 * Serves the route table. The order of checks (docs/architecture/protocol.md, "Admin requests"): credential, role,
 * shape, existence and ownership, state; the last two are the use cases', a foreign `customerId` is refused here.
 */

export interface MountOptions {
  authenticator: Authenticator
  clock: Clock
  /** Of the bodies that arrive or wait for their answer, shared with the webhooks of the process. */
  bodies: BodyBudget
}

const NO_BODY = new Uint8Array()

/** Largest body of a management request, bytes. */
export const MAX_ADMIN_BODY_BYTES = 1_000_000

/** Throws when a row of the table is malformed. */
export function mountRoutes(table: readonly Route[], options: MountOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  const ajv = createCompiler()
  for (const row of table) {
    const shape = compileShape(row, ajv)
    const path = row.path.replaceAll(/\{(\w+)\}/g, ':$1')
    router.register(path, [row.method], (ctx: Context) => serve(row, shape, ctx, options))
  }
  return router
}

async function serve(row: Route, shape: RequestShape, ctx: Context, options: MountOptions): Promise<void> {
  const principal = await authenticate(options.authenticator, ctx.req)
  if (!mayPerform(principal.role, row.action)) throw roleMissing(row.action)
  const query = required(shape.query(ctx.querystring))
  const raw = row.body ? await readBody(ctx.req, ctx.res, MAX_ADMIN_BODY_BYTES, options.bodies) : NO_BODY
  if (typeof raw === 'string') return refuseBody(ctx, raw, options.clock)
  try {
    const body = row.body ? required(shape.body(raw)) : undefined
    // A body takes its time: the key that was good for its first byte may be revoked before its last.
    if (row.body) await authenticate(options.authenticator, ctx.req)
    const params = ctx.params as Record<string, string>
    checkOwnership(row, principal, params, query)
    const call: Call = { principal, params, query, body, raw }
    await answer(ctx, await (row.handler as (call: Call) => Promise<Reply>)(call))
  } finally {
    options.bodies.giveBack(raw.length)
  }
}

const BODY_REFUSALS = {
  'too-large': errors.bodyTooLarge,
  encoded: errors.bodyEncoded,
  busy: errors.bodiesBusy,
} as const

/** The answer is out afterwards, unless nobody is there to be answered. */
function refuseBody(ctx: Context, reason: NoBody, clock: Clock): void {
  ctx.respond = false
  if (reason === 'aborted') return
  const refusal = BODY_REFUSALS[reason]
  answerEarly(clock, ctx.req, ctx.res, { ...refusal, body: JSON.stringify({ error: refusal.error }) })
}

/** What cannot be an identifier names nothing, and never reaches a database. */
function checkOwnership(
  row: Route,
  principal: Principal,
  params: Record<string, string>,
  query: Record<string, unknown>,
): void {
  if (row.customerId && query.customerId !== undefined && query.customerId !== principal.customerId) {
    throw new ServiceError('customerForeign')
  }
  if (!areIdentifiers(params)) throw new ServiceError(row.notFound ?? 'routeNotFound')
}

async function answer(ctx: Context, { status, body }: Reply): Promise<void> {
  ctx.status = status
  if (body === undefined) return
  ctx.type = 'application/json'
  if (body instanceof Uint8Array) ctx.body = Buffer.from(body.buffer, body.byteOffset, body.length)
  else ctx.body = isLong(body) ? await jsonInTurns(body) : body
}

function isLong(body: unknown): body is readonly unknown[] {
  return Array.isArray(body) && body.length > ENTRIES_A_TURN
}
