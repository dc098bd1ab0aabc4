import { Router } from '@koa/router'
import type { Context } from 'koa'
import { errors, required, roleMissing, ServiceError } from '../../domain/errors.ts'
import type { Principal } from '../../domain/principal.ts'
import { mayPerform } from '../../domain/roles.ts'
import type { Clock } from '../../runtime/clock.ts'
import { answerEarly, readBody } from '../body.ts'
import { authenticate } from '../credential.ts'
import type { Authenticator } from '../ports.ts'
import { areIdentifiers, compileShape, type RequestShape } from './request-shape.ts'
import type { Call, Reply, Route } from './route.ts'

/**
 * Serves the route table. The order of checks is the design's (section 9): credential, role, shape,
 * existence and ownership, state; the last two are the use cases', a foreign `customerId` is refused here.
 */

export interface MountOptions {
  authenticator: Authenticator
  clock: Clock
}

/** Largest body of a management request, bytes. */
export const MAX_ADMIN_BODY_BYTES = 1_000_000

/** Throws when a row of the table is malformed. */
export function mountRoutes(table: readonly Route[], options: MountOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  for (const row of table) {
    const shape = compileShape(row)
    const path = row.path.replaceAll(/\{(\w+)\}/g, ':$1')
    router.register(path, [row.method], (ctx: Context) => serve(row, shape, ctx, options))
  }
  return router
}

async function serve(row: Route, shape: RequestShape, ctx: Context, options: MountOptions): Promise<void> {
  const principal = await authenticate(options.authenticator, ctx.headers)
  if (!mayPerform(principal.role, row.action)) throw roleMissing(row.action)
  const query = required(shape.query(ctx.querystring))
  const body = row.body ? await readJsonBody(ctx, shape, options.clock) : undefined
  if (ctx.respond === false) return
  const params = ctx.params as Record<string, string>
  checkOwnership(row, principal, params, query)
  const call: Call = { principal, params, query, body }
  answer(ctx, await (row.handler as (call: Call) => Promise<Reply>)(call))
}

/** `ctx.respond` is false afterwards when the answer is out already, or nobody is there to be answered. */
async function readJsonBody(ctx: Context, shape: RequestShape, clock: Clock): Promise<unknown> {
  const body = await readBody(ctx.req, ctx.res, MAX_ADMIN_BODY_BYTES)
  if (typeof body !== 'string') return required(shape.body(body))
  ctx.respond = false
  if (body === 'aborted') return undefined
  const { status, error } = body === 'too-large' ? errors.bodyTooLarge : errors.bodyEncoded
  answerEarly(clock, ctx.req, ctx.res, status, JSON.stringify({ error }))
  return undefined
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

function answer(ctx: Context, reply: Reply): void {
  ctx.status = reply.status
  if (reply.body === undefined) return
  ctx.type = 'application/json'
  ctx.body = reply.body instanceof Uint8Array ? Buffer.from(reply.body) : reply.body
}
