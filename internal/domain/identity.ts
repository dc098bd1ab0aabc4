/**
 * Who an ID token speaks of (docs/architecture/protocol.md, "Accounts"): the claims that count,
 * read out of a payload whose signature and validity somebody else has checked.
 */

import { parseName } from './names.ts'
import { accept, type Parsed, refuse } from './parsed.ts'

/** An account of the identity provider. `issuer` and `subject` together name it, for ever. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
  /** Whether whoever holds it signs in with a password. */
  readonly password: boolean
  /** Nobody signed in: the provider gave a guest a token (Firebase, "Authenticate with Firebase anonymously"). */
  readonly anonymous: boolean
  /** `email_verified` is true, and nothing that only looks like it. */
  readonly emailVerified: boolean
  /** For people: the name, else the e-mail address; undefined: the token has neither. */
  readonly name: string | undefined
}

/** Of `sub`, characters (OpenID Connect Core, section 2). */
const SUBJECT_MAX_LENGTH = 255

/** The error says which claim is missing or malformed. */
export function identityOf(claims: Readonly<Record<string, unknown>>): Parsed<Identity> {
  const { iss, sub } = claims
  if (typeof iss !== 'string' || iss === '') return refuse('iss must be a string')
  if (!parseName('sub', sub, SUBJECT_MAX_LENGTH).ok) {
    return refuse(`sub must be 1 to ${SUBJECT_MAX_LENGTH} characters`)
  }
  return accept({
    issuer: iss,
    subject: sub as string,
    password: isPasswordAccount(claims),
    anonymous: signInProvider(claims.firebase) === 'anonymous',
    emailVerified: claims.email_verified === true,
    name: nameOf(claims.name) ?? nameOf(claims.email),
  })
}

/** A password alone proves no e-mail address. */
export function lacksVerifiedEmail(identity: Identity): boolean {
  return identity.password && !identity.emailVerified
}

/** Also when the token does not say how its bearer signed in. */
function isPasswordAccount(claims: Readonly<Record<string, unknown>>): boolean {
  const provider = signInProvider(claims.firebase)
  const methods = [claims.amr].flat().filter((method) => typeof method === 'string')
  if (provider === 'password' || methods.includes('pwd')) return true
  return provider === undefined && methods.length === 0
}

function signInProvider(firebase: unknown): string | undefined {
  if (typeof firebase !== 'object' || firebase === null) return undefined
  const { sign_in_provider: provider } = firebase as { sign_in_provider?: unknown }
  return typeof provider === 'string' && provider !== '' ? provider : undefined
}

function nameOf(claim: unknown): string | undefined {
  const name = parseName('name', typeof claim === 'string' ? claim.trim() : undefined)
  return name.ok ? name.value : undefined
}
