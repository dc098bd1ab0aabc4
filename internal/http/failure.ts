import type { Context, Next } from 'koa'
import { errors, ServiceError } from '../domain/errors.ts'
import type { HttpTelemetry } from './ports.ts'
import { REQUEST_ID_HEADER, requestIdOf } from './request-id.ts'

/**
 * The outermost middleware: whatever goes wrong below becomes `{error, code?, …}` with its status, and what
 * nobody meant for the caller becomes a 500 that tells nothing but the request's id.
 */
export function failures(
  telemetry: HttpTelemetry,
  isOutage: (error: unknown) => boolean,
): (ctx: Context, next: Next) => Promise<void> {
  return async (ctx, next) => {
    try {
      await next()
      describeEmptyAnswer(ctx)
    } catch (error) {
      answerFailure(ctx, isOutage(error) ? outage(error) : error, telemetry)
    }
    const status = ctx.respond === false ? ctx.res.statusCode : ctx.status
    if (status >= 400) telemetry.refused(status)
  }
}

/** Every answer of the management API carries `X-Request-Id`. */
export async function requestIds(ctx: Context, next: Next): Promise<void> {
  ctx.set(REQUEST_ID_HEADER, requestId(ctx))
  await next()
}

function requestId(ctx: Context): string {
  ctx.state.requestId ??= requestIdOf(ctx.req.headers['x-request-id'])
  return ctx.state.requestId
}

/** The status that an error is answered with. */
export function statusOf(error: unknown, isOutage: (error: unknown) => boolean): number {
  if (isOutage(error)) return errors.databaseUnavailable.status
  return error instanceof ServiceError ? error.status : errors.internal.status
}

/** The caller can try again: no bug, and no details either. */
function outage(cause: unknown): ServiceError {
  return new ServiceError('databaseUnavailable', {}, { cause })
}

function answerFailure(ctx: Context, error: unknown, telemetry: HttpTelemetry): void {
  const known = error instanceof ServiceError ? error : undefined
  if (!known) telemetry.failed({ requestId: requestId(ctx), method: ctx.method, path: ctx.path, error })
  // Too late for another answer: the connection breaks off, so that half an answer is not taken for a whole.
  if (ctx.res.headersSent) {
    ctx.res.destroy()
    return
  }
  ctx.respond = true
  ctx.status = known?.status ?? errors.internal.status
  ctx.set(REQUEST_ID_HEADER, requestId(ctx))
  if (known?.retryAfter !== undefined) ctx.set('Retry-After', String(known.retryAfter))
  if (known?.entry.challenge !== undefined) ctx.set('WWW-Authenticate', known.entry.challenge)
  ctx.body = known?.body ?? { error: errors.internal.error }
}

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  404: errors.routeNotFound.error,
  405: 'Method not allowed',
}

/** The router answers these without a body; every error of ours has one. */
function describeEmptyAnswer(ctx: Context): void {
  const text = STATUS_TEXTS[ctx.status]
  if (ctx.respond === false || text === undefined || ctx.body !== undefined) return
  const { status } = ctx
  ctx.body = { error: text }
  ctx.status = status
}
