import { METHODS } from 'node:http'
import { Router } from '@koa/router'
import type { Context } from 'koa'
import { errors, required, roleMissing, ServiceError } from '../../domain/errors.ts'
import type { Principal } from '../../domain/principal.ts'
import { mayPerform } from '../../domain/roles.ts'
import type { Clock, Randomness } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import { jsonInTurns } from '../../runtime/turns.ts'
import { type NoBody, readBody } from '../body.ts'
import type { BodyShares } from '../body-shares.ts'
import { authenticate } from '../credential.ts'
import { answerEarly } from '../early-answer.ts'
import type { Authenticator } from '../ports.ts'
import type { Answered, RequestLimits } from '../request-limits.ts'
import { type Auditing, audited, type Seen } from './audited.ts'
import { areIdentifiers, compileShape, createCompiler, type RequestShape } from './request-shape.ts'
import { type Call, isRead, passesSuspension, type Reply, type Route } from './route.ts'

/**
 * Serves the route table. The order of checks (docs/architecture/protocol.md, "Admin requests"): credential,
 * suspension, rate, role, shape, existence and ownership, state; the last two are the use cases', a foreign `customerId` is
 * refused here.
 */

export interface MountOptions extends Auditing {
  authenticator: Authenticator
  limits: RequestLimits
  clock: Clock
  random: Pick<Randomness, 'fraction'>
  /** Of the bodies that arrive or wait for their answer, shared with the webhooks of the process. */
  bodies: BodyShares
}

const NO_BODY = new Uint8Array()
/**
 * A request beyond its rate is answered so late on average, ms; the least is half of it, the most one and a half. Whoever
 * sends as fast as answers come is slowed down by it. Requests that are refused together come back one by one: together
 * they, and those among them that are let in, would keep the event loop busy for tens of ms.
 */
const REFUSAL_MS = 500

/** Largest body of a management request, bytes. */
export const MAX_ADMIN_BODY_BYTES = 1_000_000

/** Throws when a row of the table is malformed. */
export function mountRoutes(table: readonly Route[], options: MountOptions): Router {
  // With every method that there is: one that no endpoint has is 405, as one that the path lacks.
  const router = new Router({ strict: true, sensitive: true, methods: METHODS })
  const ajv = createCompiler()
  for (const row of table) {
    const shape = compileShape(row, ajv)
    const path = row.path.replaceAll(/\{(\w+)\}/g, ':$1')
    router.register(path, [row.method], (ctx: Context) =>
      audited(row, ctx, options, (seen) => serve(row, shape, ctx, options, seen)),
    )
  }
  return router
}

async function serve(
  row: Route,
  shape: RequestShape,
  ctx: Context,
  options: MountOptions,
  seen: Seen,
): Promise<void> {
  const principal = await admit(row, ctx, options, seen)
  const refused = options.limits.refusal(principal, row.waitsFor)
  if (refused !== null) {
    await sleep(options.clock, REFUSAL_MS * (0.5 + options.random.fraction()))
    throw refused
  }
  if (!mayPerform(principal.role, row.action)) throw roleMissing(row.action)
  const query = required(shape.query(ctx.querystring))
  // Not with the webhooks of the customer: whose buffers are flooded must still be able to disable them.
  const room = options.bodies.of(`management of ${principal.customerId}`)
  const raw = row.body ? await readBody(ctx.req, ctx.res, MAX_ADMIN_BODY_BYTES, room) : NO_BODY
  if (typeof raw === 'string') {
    if (raw === 'aborted') seen.broken = true
    return refuseBody(ctx, raw, options.clock)
  }
  try {
    const body = row.body ? required(shape.body(raw)) : undefined
    seen.body = body
    // A body takes its time: the key that was good for its first byte may be revoked before its last, or its customer suspended.
    if (row.body) await admit(row, ctx, options, seen)
    const params = ctx.params as Record<string, string>
    checkOwnership(row, principal, params, query)
    const call: Call = { principal, params, query, body, raw, gone: () => goneOf(ctx) }
    await perform(row, call, ctx, options, seen)
  } finally {
    room.giveBack(raw.length)
  }
}

/**
 * In the customer's turn. An answer to a read has a turn of its own until it has left: what is not read yet is in memory,
 * too. A change needs none, for its answer is short: whoever reads slowly, with a key that leaked, delays no revocation.
 */
async function perform(
  row: Route,
  call: Call,
  ctx: Context,
  options: MountOptions,
  seen: Seen,
): Promise<void> {
  const handle = () => (row.handler as (call: Call) => Promise<Reply>)(call)
  const { principal } = call
  const give = async (reply: Reply): Promise<void> => {
    seen.answer = reply.body
    const answered = await answer(ctx, reply)
    if (answered !== null) options.limits.charge(principal, answered)
  }
  const answering = (work: () => Promise<void>): Promise<void> =>
    options.limits.answering(principal.customerId, work, () => leftOf(ctx))
  if (row.waitsFor === undefined) {
    const kind = isRead(row) ? 'read' : 'change'
    const work = () => options.limits.inTurn(principal, kind, async () => give(await handle()))
    return kind === 'read' ? answering(work) : work()
  }
  const reply = await handle()
  if (row.waitsFor !== 'change') return give(reply)
  // As for a body: whoever waits may have lost the key meanwhile.
  await admit(row, ctx, options, seen)
  // It waited without a turn, for its answer alone is long. Those of other waits are short.
  return answering(() => give(reply))
}

async function admit(
  row: Route,
  ctx: Context,
  { authenticator }: MountOptions,
  seen: Seen,
): Promise<Principal> {
  const principal = await authenticate(authenticator, ctx.req)
  seen.principal = principal
  if (principal.suspended && !passesSuspension(row)) throw new ServiceError('accountSuspended')
  return principal
}

/** A client that ended its side, and reads on, is not kept waiting either: nobody can tell it from one that has gone. */
function goneOf({ req, res }: Context): AbortSignal {
  const gone = new AbortController()
  const abort = () => gone.abort()
  // It may have gone while the request was let in, or before its turn on the connection: no event tells of that again.
  if (req.socket.readableEnded || req.socket.destroyed) abort()
  req.socket.once('end', abort)
  res.once('close', () => {
    req.socket.off('end', abort)
    abort()
  })
  return gone.signal
}

/** Resolves once the system has taken the answer, or the connection has closed. */
function leftOf({ res }: Context): Promise<void> {
  if (res.closed || res.destroyed) return Promise.resolve()
  return new Promise((resolve) => res.once('close', () => resolve()))
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
  const { requestId } = ctx.state
  answerEarly(clock, ctx.req, ctx.res, {
    ...refusal,
    body: JSON.stringify({ error: refusal.error }),
    requestId,
  })
}

/** What cannot be an identifier names nothing, and never reaches a database. */
function checkOwnership(
  row: Route,
  principal: Principal,
  params: Record<string, string>,
  query: Record<string, unknown>,
): void {
  if (query.customerId !== undefined && query.customerId !== principal.customerId) {
    throw new ServiceError('customerForeign')
  }
  if (!areIdentifiers(params)) throw new ServiceError(row.notFound ?? 'routeNotFound')
}

/** null: it cost no more than any request. */
async function answer(ctx: Context, { status, body }: Reply): Promise<Answered | null> {
  ctx.status = status
  if (body === undefined) return null
  ctx.type = 'application/json'
  if (body instanceof Uint8Array) {
    ctx.body = Buffer.from(body.buffer, body.byteOffset, body.length)
    return { kind: 'bytes', bytes: body.length }
  }
  if (!Array.isArray(body)) {
    ctx.body = body
    return null
  }
  const list = await jsonInTurns(body)
  ctx.body = list
  return { kind: 'list', bytes: list.length }
}
