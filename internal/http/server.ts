import type { Router } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { answerHeaders } from './answer-headers.ts'
import { documentsRoute } from './documents.ts'
import { failures, requestIds } from './failure.ts'
import type { Health } from './health.ts'
import type { IngestRoute } from './ingest.ts'
import type { Gate } from './listener.ts'
import type { HttpTelemetry } from './ports.ts'
import { refusesMethod } from './read-only.ts'
import { entryRoute, serviceEntry } from './service-entry.ts'
import type { Handler } from './turns.ts'

/**
 * The application: which endpoints it serves depends on the role of the process (docs/architecture/protocol.md, "Roles and
 * stores"). Order matters: failures around everything, ingest before what only the management API needs.
 */
export interface AppParts {
  telemetry: HttpTelemetry
  gate: Gate
  /** Whether an error of a use case only says that the database cannot be asked now: 503, not 500. */
  isOutage: (error: unknown) => boolean
  health: () => Promise<Health>
  /** Of the software, as `/` tells it. */
  version: string
  /** Absent: this process takes no webhooks. */
  ingest?: IngestRoute
  /** `mountRoutes`, with its documents; absent: no management API here. */
  admin?: Router
  /** The local receiver. */
  others?: readonly Middleware[]
}

/** Handles every request of the listener. */
export function createHandler(parts: AppParts): Handler {
  const application = createApp(parts).callback()
  return parts.ingest ? parts.ingest.before(application) : application
}

function createApp(parts: AppParts): Koa {
  const app = new Koa()
  app.on('error', (error: NodeJS.ErrnoException, ctx?: Context) => {
    // A connection that broke under its answer is the client's affair; the rest is ours.
    if (error.code === 'ECONNRESET' || error.code === 'EPIPE' || error.code === 'ECANCELED') return
    const { method = '', path = '', state = {} } = ctx ?? {}
    parts.telemetry.failed({ requestId: state.requestId ?? '', method, path, error })
  })
  app.use(answerHeaders)
  app.use(endedLines)
  app.use(failures(parts.telemetry, parts.isOutage))
  if (parts.ingest) app.use(parts.ingest.middleware)
  app.use(requestIds)
  app.use(closeWith(parts.gate))
  app.use(healthRoute(parts.health))
  const { ingest, admin } = parts
  app.use(entryRoute(serviceEntry(parts.version, { ingest: !!ingest, management: !!admin })))
  for (const other of parts.others ?? []) app.use(other)
  if (parts.admin) {
    app.use(documentsRoute())
    app.use(parts.admin.routes() as Middleware).use(parts.admin.allowedMethods() as Middleware)
  }
  return app
}

/** JSON ends its line, so that the prompt of a shell does not stand behind it. */
const endedLines: Middleware = async (ctx, next) => {
  await next()
  if (!isPlainObject(ctx.body)) return
  ctx.type = 'application/json'
  ctx.body = `${JSON.stringify(ctx.body)}\n`
}

/** What Koa would write as JSON: no text, bytes or stream. */
function isPlainObject(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false
  return Array.isArray(body) || Object.getPrototypeOf(body) === Object.prototype
}

/** While the listener closes, every answer asks for the end of its connection. */
function closeWith(gate: Gate): Middleware {
  return async (ctx, next) => {
    await next()
    if (gate.closing && !ctx.res.headersSent) ctx.set('Connection', 'close')
  }
}

function healthRoute(health: () => Promise<Health>): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== '/health') return next()
    if (refusesMethod(ctx)) return
    const state = await health()
    ctx.status = state.status === 'ok' ? 200 : 503
    ctx.body = state
  }
}
