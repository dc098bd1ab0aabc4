/**
 * Group key and message id of a webhook (docs/reference/buffers.md, "Group keys" and "Deduplication").
 * Both are read from own properties of the parsed body; a number gives its source text.
 */
import { isUtf8 } from 'node:buffer'
import { ServiceError } from './errors.ts'
import { isCredentialHeader } from './header-names.ts'
import type { GroupKeyConfig, MessageIdConfig } from './model.ts'
import { numberText } from './number-text.ts'

/** UTF-8 bytes. */
export const MAX_GROUP_KEY_BYTES = 1024
export const MAX_MESSAGE_ID_BYTES = 512
export const MESSAGE_ID_HEADER = 'X-Idempotency-Key'
const BEYOND_ASCII = /[\u0080-\u00ff]/

export interface ReceivedBody {
  /** `bytes` parsed. */
  value: unknown
  /** Valid JSON in UTF-8. */
  bytes: Uint8Array
}

/** A request header by name in any case, a character for each of its bytes; undefined or '' when it was not sent. */
export type HeaderLookup = (name: string) => string | undefined

/** For a buffer that was stored with such a name before it was refused: what is withheld counts as not sent. */
export function withoutCredentials(header: HeaderLookup, signatureHeader: string | undefined): HeaderLookup {
  return (name) => (isCredentialHeader(name, signatureHeader) ? undefined : header(name))
}

export type Extracted<T> = { ok: true; value: T } | { ok: false; error: ServiceError }

/** The group key, or the 400 that says why there is none. */
export function extractGroupKey(
  config: GroupKeyConfig,
  body: ReceivedBody,
  header: HeaderLookup,
): Extracted<string> {
  const inBody = config.mode === 'jsonpath' && config.path ? keyAt(body, config.path) : undefined
  const key = inBody ?? headerValue(config.fallbackHeader, header)
  if (key === undefined) return { ok: false, error: new ServiceError('groupKeyMissing') }
  const problem = unusable(key, MAX_GROUP_KEY_BYTES)
  if (problem === null) return { ok: true, value: key }
  return { ok: false, error: new ServiceError('groupKeyUnusable', { error: `Group key ${problem}` }) }
}

interface IdPlaces {
  /** `field`: as an error names it. */
  readonly inBody: { readonly field: string; readonly segments: readonly string[] } | undefined
  /** Name of a header. */
  readonly header: string | undefined
}

/** Of every buffer. */
const everywhere: IdPlaces = {
  inBody: { field: 'messageId', segments: ['messageId'] },
  header: MESSAGE_ID_HEADER,
}

/**
 * The sender's message id, null when it gave none, or a 400 that names the field. The places of `config` come before
 * those that every buffer has; of each two the body comes first.
 */
export function extractMessageId(
  config: MessageIdConfig | undefined,
  body: ReceivedBody,
  header: HeaderLookup,
): Extracted<string | null> {
  const found = (config && findId(placesOf(config), body, header)) ?? findId(everywhere, body, header)
  if (found === undefined) return { ok: true, value: null }
  const problem = unusable(found.id, MAX_MESSAGE_ID_BYTES)
  if (problem === null) return { ok: true, value: found.id }
  return { ok: false, error: new ServiceError('messageIdUnusable', { error: `${found.field} ${problem}` }) }
}

function placesOf({ path, header }: MessageIdConfig): IdPlaces {
  const inBody = path === undefined ? undefined : { field: path.slice(2), segments: path.split('.').slice(1) }
  return { inBody, header }
}

function findId(
  { inBody, header: name }: IdPlaces,
  body: ReceivedBody,
  header: HeaderLookup,
): { field: string; id: string } | undefined {
  const id = inBody && textAt(body, inBody.segments)
  if (inBody !== undefined && id !== undefined) return { field: inBody.field, id }
  const sent = headerValue(name, header)
  return name === undefined || sent === undefined ? undefined : { field: name, id: sent }
}

function keyAt(body: ReceivedBody, path: string): string | undefined {
  const segments = path.split('.').slice(1)
  const value = valueAt(body.value, segments)
  if (typeof value === 'boolean') return String(value)
  return textOf(value, body.bytes, segments)
}

function textAt(body: ReceivedBody, segments: readonly string[]): string | undefined {
  return textOf(valueAt(body.value, segments), body.bytes, segments)
}

/**
 * A string or a number as text; undefined for every other value and for "". Lone surrogates have no UTF-8:
 * they are replaced here once, so that the text and its stored bytes stay the same name.
 */
function textOf(value: unknown, bytes: Uint8Array, segments: readonly string[]): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value.toWellFormed()
  if (typeof value !== 'number') return undefined
  const text = numberText(bytes, segments)
  if (text === null) throw new Error('the parsed body and its bytes differ')
  return text
}

/** Own properties only: `$.constructor.name` finds nothing that the sender did not send. */
function valueAt(root: unknown, segments: readonly string[]): unknown {
  let value = root
  for (const segment of segments) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return undefined
    // `length` is an own property of an array, but not one of its elements.
    if (Array.isArray(value) && !/^(0|[1-9][0-9]*)$/.test(segment)) return undefined
    value = (value as Record<string, unknown>)[segment]
  }
  return value
}

function headerValue(name: string | undefined, header: HeaderLookup): string | undefined {
  const value = name === undefined ? undefined : header(name)
  return value ? headerText(value) : undefined
}

/** Most senders write UTF-8, and a text is the same key in a header as in a body. What is no UTF-8 is Latin-1. */
function headerText(value: string): string {
  if (!BEYOND_ASCII.test(value)) return value
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : value
}

/** Postgres keeps keys and ids as text, which cannot hold NUL: better refused than stuck in the queue. */
function unusable(text: string, maxBytes: number): string | null {
  if (text.includes('\u0000')) return 'must not contain the character U+0000'
  const fits = text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes
  return fits ? null : `must be at most ${maxBytes} bytes`
}
