/** Who asks, by API key or ID token (docs/reference/api.md, "Authentication"). */

import { ServiceError } from '../domain/errors.ts'
import { lacksVerifiedEmail } from '../domain/identity.ts'
import type { KnownKey } from '../domain/model.ts'
import type { Principal } from '../domain/principal.ts'
import { DeadlineError } from '../runtime/deadline.ts'
import type { IdentityCache } from './identity-cache.ts'
import type { SignUp, TokenVerifier } from './ports.ts'

export interface KeyAuthentication {
  /** Throws 401 `Invalid or revoked API key`; 503 while the database cannot be asked. */
  byKey(secret: string): Promise<Principal>
}

export function createKeyAuthentication(keys: {
  authenticate(secret: string): Promise<KnownKey | undefined>
}): KeyAuthentication {
  return {
    async byKey(secret) {
      const record = await keys.authenticate(secret).catch(refuseWhenLate)
      if (record === undefined) throw new ServiceError('keyInvalid')
      return principalOf(record)
    },
  }
}

export interface TokenAuthentication {
  /**
   * The first good token of an account creates its customer; whoever bears one is its owner
   * (docs/architecture/protocol.md, "Accounts"). Throws 401, 403 for an unverified e-mail address or a guest, or 503; a refused token
   * creates nothing.
   */
  byToken(token: string): Promise<Principal>
}

export interface TokenAuthenticationOptions {
  /** undefined: no identity provider is configured, and no token is good. */
  verifier: TokenVerifier | undefined
  identities: Pick<IdentityCache, 'customerOf'>
  signUp: SignUp
}

export function createTokenAuthentication(options: TokenAuthenticationOptions): TokenAuthentication {
  const { verifier, identities, signUp } = options
  return {
    async byToken(token) {
      if (verifier === undefined) throw new ServiceError('tokenInvalid')
      const identity = await verifier.verify(token)
      if (lacksVerifiedEmail(identity)) throw new ServiceError('emailNotVerified')
      const known = await identities.customerOf(identity).catch(refuseWhenLate)
      // Anybody gets as many of those tokens as he likes.
      if (known === undefined && identity.anonymous) throw new ServiceError('accountAnonymous')
      const { issuer, subject } = identity
      const customerId = known?.customerId ?? (await signUp(identity))
      const suspended = known?.suspended && { suspended: true as const }
      return { customerId, role: 'owner', via: 'token', identity: { issuer, subject }, ...suspended }
    },
  }
}

function refuseWhenLate(error: unknown): never {
  throw error instanceof DeadlineError ? new ServiceError('databaseUnavailable', {}, { cause: error }) : error
}

export function principalOf(record: KnownKey): Principal {
  const { customerId, role, projectIds, keyId, suspended } = record
  return {
    customerId,
    role,
    ...(projectIds && { projectIds }),
    keyId,
    via: 'key',
    ...(suspended && { suspended }),
  }
}
