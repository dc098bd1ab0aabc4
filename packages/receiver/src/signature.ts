/** The signature of a delivery (docs/guide/receivers.md, "Verify the signature"). */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type HeadersLike, headerOf } from './headers.ts'

/** One secret, or all that are valid while a secret is replaced. */
export type Secrets = string | readonly string[]

export interface SignatureOptions {
  /** Name of the header, as `delivery.signing.header` of the buffer. Default `x-svc-signature`. */
  readonly signatureHeader?: string
}

export const SIGNATURE_HEADER = 'x-svc-signature'
const HEX_SHA256 = /^[0-9a-f]{64}$/

/** Lower-case hex HMAC-SHA256 of the body, 64 characters. A text is taken as UTF-8. */
export function sign(rawBody: Uint8Array | string, secret: string): string {
  return hmac(rawBody, secret).toString('hex')
}

/**
 * Whether one of the secrets signed exactly these bytes. Every secret is compared, in constant time, so the time tells
 * nobody which one fits. Throws a TypeError when the body was parsed already, or when there is no secret to compare with.
 */
export function verify(
  rawBody: Uint8Array | string,
  headers: HeadersLike,
  secrets: Secrets,
  { signatureHeader = SIGNATURE_HEADER }: SignatureOptions = {},
): boolean {
  requireRawBody(rawBody)
  const valid = secretsOf(secrets)
  const presented = headerOf(headers, signatureHeader) ?? ''
  if (!HEX_SHA256.test(presented)) return false
  const bytes = Buffer.from(presented, 'hex')
  return valid.map((secret) => timingSafeEqual(hmac(rawBody, secret), bytes)).includes(true)
}

/** The list of them. Throws a TypeError when it is empty or holds an empty one: anybody could sign with that. */
export function secretsOf(secrets: Secrets): readonly string[] {
  const list = typeof secrets === 'string' ? [secrets] : secrets
  const usable = Array.isArray(list) && list.length > 0 && list.every(isSecret)
  if (!usable) throw new TypeError('secrets must be a text, or a list of texts, none of them empty')
  return list
}

function isSecret(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function requireRawBody(rawBody: unknown): void {
  if (typeof rawBody === 'string' || rawBody instanceof Uint8Array) return
  throw new TypeError('rawBody must be the bytes of the request, before anything parses them')
}

function hmac(rawBody: Uint8Array | string, secret: string): Buffer {
  return createHmac('sha256', secret).update(rawBody).digest()
}
