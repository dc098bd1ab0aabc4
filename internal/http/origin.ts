import type { IncomingMessage } from 'node:http'
import { type AuditOrigin, boundedText } from '../domain/audit.ts'

/** Of an address with its zone, characters. */
const MAX_ADDRESS = 64
/** Room for a handful of proxies. */
const MAX_FORWARDED = 200

/**
 * From where a request came. The address is that of the connection, which nobody can forge; behind a proxy it is the
 * proxy's. What proxies and callers claim about it stands beside it, and is never mixed with it.
 */
export function originOf({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): AuditOrigin {
  const address = socket.remoteAddress
  const claimed = headers['x-forwarded-for']
  return {
    ...(address !== undefined && { address: boundedText(plain(address), MAX_ADDRESS) }),
    ...(claimed !== undefined && { forwardedFor: boundedText(String(claimed), MAX_FORWARDED) }),
  }
}

/** IPv4 as it is written, also where the listener takes both kinds. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}
