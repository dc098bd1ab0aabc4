import type { Context } from 'koa'
import type { PresentedCredential } from '../../audit/ports.ts'
import type { AuditTrail } from '../../audit/trail.ts'
import { type ErrorKey, ServiceError } from '../../domain/errors.ts'
import type { Principal } from '../../domain/principal.ts'
import { statusOf } from '../failure.ts'
import { originOf } from '../origin.ts'
import { targetOf } from './audit-target.ts'
import type { Route } from './route.ts'

/**
 * Tells the audit of every management request: of changes whatever came of them, and of credentials that were not good.
 * All rows of the table go through here, so none can be forgotten.
 */

/** What is known of a request while it is served. */
export interface Seen {
  principal?: Principal
  body?: unknown
  answer?: unknown
  /** Its body never came, and nothing was done. */
  broken?: true
}

export interface Auditing {
  audit: Pick<AuditTrail, 'changed' | 'refused'>
  isOutage: (error: unknown) => boolean
}

export async function audited(
  row: Route,
  ctx: Context,
  { audit, isOutage }: Auditing,
  serve: (seen: Seen) => Promise<void>,
): Promise<void> {
  const seen: Seen = {}
  // Now, for a connection that has broken has no address any more.
  const from = originOf(ctx.req)

  function tell(status: number, error?: unknown): void {
    const { method, path: route, action } = row
    const credential = error instanceof ServiceError ? credentials[error.key] : undefined
    const { principal, body, answer, broken } = seen
    const params = ctx.params as Record<string, string>
    const customerId = principal?.customerId ?? ''
    if (credential === undefined && (method === 'GET' || principal === undefined || broken)) return
    const asked = { method, route, from, target: targetOf({ customerId, params, body, answer }) }
    if (credential !== undefined)
      audit.refused({ ...asked, ...presented(ctx, credential), place: 'management' })
    else if (principal !== undefined) audit.changed({ ...asked, principal, action, status })
  }

  try {
    await serve(seen)
  } catch (error) {
    tell(statusOf(error, isOutage), error)
    throw error
  }
  tell(ctx.respond === false ? ctx.res.statusCode : ctx.status)
}

/** Refusals that say that nobody knows who asks, or that it is nobody who may. */
const credentials: Partial<Record<ErrorKey, PresentedCredential>> = {
  credentialMissing: 'none',
  keyInvalid: 'key',
  tokenInvalid: 'token',
  emailNotVerified: 'token',
  accountAnonymous: 'token',
}

function presented(ctx: Context, credential: PresentedCredential) {
  const secret = ctx.req.headers['x-api-key']
  return { credential, ...(credential === 'key' && secret !== undefined && { secret: String(secret) }) }
}
