/**
 * The form of an API key's secret (docs/reference/api.md, "Authentication"): `svk_` and 48 lowercase hex characters.
 */

import { hash } from 'node:crypto'

const FORM = /^svk_[0-9a-f]{48}$/

/** Random bytes in a secret: 192 bits need no salt and no slow hash. */
export const SECRET_BYTES = 24

export function isSecret(text: string): boolean {
  return FORM.test(text)
}

/** `random`: 24 random bytes. */
export function secretOf(random: Uint8Array): string {
  if (random.length !== SECRET_BYTES) throw new RangeError(`a secret is made of ${SECRET_BYTES} bytes`)
  return `svk_${Buffer.from(random).toString('hex')}`
}

/** What is stored and looked up: SHA-256, lowercase hex. */
export function hashOf(secret: string): string {
  return hash('sha256', secret, 'hex')
}

/** What is shown of a key in lists: its first 8 characters. */
export function prefixOf(secret: string): string {
  return secret.slice(0, 8)
}
