import type { Middleware } from 'koa'
import { refusesMethod } from './read-only.ts'

/**
 * `GET /`: what answers here, and where to go from it (docs/reference/api.md, "Conventions"). It is public, and tells no
 * more than `/health` and the documents do.
 */
export interface ServiceEntry {
  readonly service: 'Penstock'
  readonly version: string
  /** Paths of this address by what they are for; with a management API also its documents. */
  readonly links: Readonly<Record<string, string>>
}

const OF_INGEST = { ingest: '/v1/ingest/{projectId}/{bufferId}' }
const OF_MANAGEMENT = { docs: '/docs', openapi: '/openapi.json', whoami: '/v1/admin/whoami' }

/** `has`: what this process serves besides `/health`. */
export function serviceEntry(
  version: string,
  has: { readonly ingest: boolean; readonly management: boolean },
): ServiceEntry {
  const links = { health: '/health', ...(has.ingest && OF_INGEST), ...(has.management && OF_MANAGEMENT) }
  return { service: 'Penstock', version, links }
}

export function entryRoute(entry: ServiceEntry): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== '/') return next()
    if (refusesMethod(ctx)) return
    ctx.body = entry
  }
}
