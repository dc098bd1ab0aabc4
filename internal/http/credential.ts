import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../domain/errors.ts'
import type { Principal } from '../domain/principal.ts'
import type { Authenticator } from './ports.ts'

const BEARER = /^Bearer +([^\s,]+) *$/i

/**
 * Authenticates a management request (docs/reference/api.md, "Authentication"). A present `X-API-Key` decides, also
 * when it is empty or wrong and a good ID token stands beside it. Throws ServiceError 401, 403 or 503.
 */
export async function authenticate(
  authenticator: Authenticator,
  { headers, headersDistinct }: Pick<IncomingMessage, 'headers' | 'headersDistinct'>,
): Promise<Principal> {
  const key = headers['x-api-key']
  if (key !== undefined) return authenticator.byKey(String(key))
  // Node passes on the first of several in `headers`; whoever looks at another one would see someone else.
  const [authorization, another] = headersDistinct.authorization ?? []
  if (authorization === undefined) throw new ServiceError('credentialMissing')
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined || another !== undefined) throw new ServiceError('tokenInvalid')
  return authenticator.byToken(token)
}
