/**
 * HTTP header names and values that a buffer may configure (docs/architecture/protocol.md, "Delivery"): valid on the
 * wire, and never one that frames the delivery request or that the service sets itself.
 */

import { schemeHeaders } from './signatures/schemes.ts'

export const HEADER_NAME_MAX_LENGTH = 128
export const HEADER_NAME_PATTERN = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
export const HEADER_VALUE_MAX_LENGTH = 4096
/** All names and values of one buffer together, in characters (one byte each on the wire). */
export const HEADERS_MAX_SIZE = 16_384
export const HEADERS_MAX_COUNT = 50

const token = new RegExp(HEADER_NAME_PATTERN)
/** Printable ASCII and Latin-1: what one byte a character can carry, without controls. */
export const HEADER_VALUE_PATTERN = '^[\\x20-\\x7e\\xa0-\\xff]*$'
const printable = new RegExp(HEADER_VALUE_PATTERN)

/** Hop-by-hop and message-framing names in lower case, and the one name that is no plain property of an object. */
export const forbiddenHeaders: readonly string[] = [
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  '__proto__',
]
export const forbiddenHeaderPrefixes: readonly string[] = ['content-', 'proxy-']

/**
 * Request headers that carry a credential or a signature of a sender, in lower case. A group key or a message id is shown in deliveries and dead
 * letters, to people who must not have them.
 */
export const credentialHeaders: readonly string[] = [
  'authorization',
  'cookie',
  'proxy-authorization',
  'x-api-key',
  ...schemeHeaders,
]

const credentials: ReadonlySet<string> = new Set(credentialHeaders)
const forbidden: ReadonlySet<string> = new Set(forbiddenHeaders)

export function isHeaderName(name: string): boolean {
  return name.length <= HEADER_NAME_MAX_LENGTH && token.test(name)
}

/** Whether `name` may be set on a delivery by configuration at all. */
export function isForbiddenHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return forbidden.has(lower) || forbiddenHeaderPrefixes.some((prefix) => lower.startsWith(prefix))
}

/** Whether a request header `name` carries a credential, or is that of the signature, which a buffer may name as it likes. */
export function isCredentialHeader(name: string, signatureHeader: string | undefined): boolean {
  const lower = name.toLowerCase()
  return credentials.has(lower) || lower === signatureHeader?.toLowerCase()
}

export function isHeaderValue(value: string): boolean {
  return value.length <= HEADER_VALUE_MAX_LENGTH && printable.test(value)
}
