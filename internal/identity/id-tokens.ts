/**
 * ID tokens of the identity provider (docs/reference/api.md, "Authentication"). Invariant: an
 * identity is answered only for a token that this issuer signed for this audience, with one of its published
 * keys and an asymmetric algorithm, and that is valid now.
 */
import { type JWTPayload, type JWTVerifyResult, jwtVerify } from 'jose'
import type { TokenVerifier } from '../auth/ports.ts'
import { ServiceError } from '../domain/errors.ts'
import { identityOf } from '../domain/identity.ts'
import type { Clock } from '../runtime/clock.ts'
import { createSigningKeys, type SigningKeysOptions } from './signing-keys.ts'

export interface IdTokensOptions extends SigningKeysOptions {
  audience: string
}

/** No `none`, and no HS*: with those a public key would be a shared secret. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** Characters; the largest ones of real providers have a tenth of it. */
const MAX_TOKEN_LENGTH = 16_384

/** How far the provider's clock and ours may be apart, seconds. */
const TOLERANCE_S = 5

/** docs/reference/api.md, "Limits": lifetime of an ID token, seconds. */
export const TOKEN_LIFETIME_S = 3_600

export function createIdTokens(options: IdTokensOptions): TokenVerifier {
  const { issuer, audience, clock } = options
  const keys = createSigningKeys(options)
  return {
    async verify(token) {
      if (token.length > MAX_TOKEN_LENGTH) throw new ServiceError('tokenInvalid')
      const verified = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        requiredClaims: ['exp', 'sub'],
        clockTolerance: TOLERANCE_S,
        currentDate: new Date(clock.now()),
      }).catch(refuse)
      if (!wasIssuedTo(audience, verified.payload)) throw new ServiceError('tokenInvalid')
      return identityIn(verified, clock)
    },
  }
}

/** Whatever else goes wrong while a token is verified, it is not verified. */
function refuse(error: unknown): never {
  throw error instanceof ServiceError ? error : new ServiceError('tokenInvalid', {}, { cause: error })
}

function identityIn({ payload, protectedHeader }: JWTVerifyResult, clock: Clock) {
  const identity = identityOf(payload)
  if (!isIdToken(protectedHeader.typ) || !isWithinLifetime(payload, clock) || !identity.ok) {
    throw new ServiceError('tokenInvalid')
  }
  return identity.value
}

/** As far as it says to which client it was issued (`azp`: OpenID Connect Core, section 3.1.3.7). */
function wasIssuedTo(audience: string, { azp }: JWTPayload): boolean {
  return azp === undefined || azp === audience
}

/** The same keys sign access and logout tokens, which say so in `typ` (RFC 9068, RFC 8725). */
function isIdToken(typ: unknown): boolean {
  return typ === undefined || (typeof typ === 'string' && typ.toUpperCase() === 'JWT')
}

/** However late a token says that it expires. One that does not say when it was issued has its `exp` alone. */
function isWithinLifetime({ iat }: JWTPayload, clock: Clock): boolean {
  if (iat === undefined) return true
  const age = clock.now() / 1_000 - iat
  return age >= -TOLERANCE_S && age <= TOKEN_LIFETIME_S + TOLERANCE_S
}
