/** Secrets as the keys of their scheme (docs/reference/buffers.md, "Source verification"). */
import type { SignatureScheme } from './schemes.ts'

const PREFIX = 'whsec_'
/** Complete groups of four, as RFC 4648 (4) writes them. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** What `createHmac` takes. The secret passed `secretProblem`. */
export function keyOf(scheme: SignatureScheme, secret: string): string | Uint8Array {
  return scheme === 'standard-webhooks' ? Buffer.from(base64Of(secret), 'base64') : secret
}

/** Why the scheme cannot use the secret, in words without a subject and without any part of the secret; null: it can. */
export function secretProblem(scheme: SignatureScheme, secret: string): string | null {
  if (scheme !== 'standard-webhooks') return null
  const text = base64Of(secret)
  if (text !== '' && BASE64.test(text)) return null
  return 'must be base64, with or without whsec_ in front, for the scheme standard-webhooks'
}

function base64Of(secret: string): string {
  return secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
}
