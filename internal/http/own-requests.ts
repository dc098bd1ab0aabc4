/**
 * Which requests the receiver of the local instance answers (docs/architecture/protocol.md, "The local instance"). It asks
 * for no credential, so a page of anybody must not reach it through a browser on this machine: by a name that it makes
 * resolve to here (DNS rebinding). Nor does anybody get a request passed on by a target that names another server.
 */
import { isIP } from 'node:net'
import type { Middleware } from 'koa'
import { hostIn } from '../domain/host-header.ts'
import { RECEIVER_PREFIX } from './receiver.ts'

const FOREIGN_TARGET = 'The target of a request to the receiver must be a path'
const FOREIGN_HOST = 'The receiver is reached by an IP address or as localhost, and by no other name'

/** Answers 400 to requests for a receiver that are none of ours. `host`: where this process listens, as configured. */
export function ownRequests(host: string): Middleware {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(RECEIVER_PREFIX)) return next()
    const error = ctx.req.url?.startsWith('/') ? undefined : FOREIGN_TARGET
    const refusal = error ?? (isOwnHost(ctx.headers.host, host) ? undefined : FOREIGN_HOST)
    if (refusal === undefined) return next()
    ctx.status = 400
    ctx.body = { error: refusal }
  }
}

/** A literal address cannot be made to resolve to another one; where only this machine listens, only its own can be meant. */
export function isOwnHost(header: string | undefined, listening: string): boolean {
  const name = hostIn(header ?? '')
  if (name === 'localhost' || isLoopback(name) || name === listening.toLowerCase()) return true
  return isIP(name) !== 0 && !isLoopback(listening)
}

/** An address, or the one name, that only this machine itself reaches. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
