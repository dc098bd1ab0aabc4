/**
 * Reading of JSON from bytes: strict UTF-8, bounded depth. The delivered batch carries the sender's own bytes,
 * so whatever passes here must be JSON byte for byte: invalid UTF-8 and a byte order mark are refused.
 */

/** Containers inside one another that a body may have; beyond it `JSON.stringify` could exhaust the stack. */
export const MAX_DEPTH = 64

export type JsonReading = { ok: true; value: unknown } | { ok: false; reason: 'syntax' | 'depth' }

/** Stateless between calls: it never decodes a stream. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads a whole body. Linear in its size, whatever its depth. */
export function readJson(bytes: Uint8Array): JsonReading {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch {
    return { ok: false, reason: 'syntax' }
  }
  return isDeeper(bytes, MAX_DEPTH) ? { ok: false, reason: 'depth' } : { ok: true, value }
}

/**
 * Whether this runtime may take an escaped member name for one that it met before (nodejs/node#63785, in Node 24, and 26 up to
 * 26.10): by one webhook a tenant could change how the webhooks of others are read.
 */
export function misreadsNames(): boolean {
  JSON.parse('{"penstock":"probe","n\\\\u00f":1}')
  return !Object.hasOwn(JSON.parse('{"penstock":"probe","n\\u00famero":1}'), 'n\u00famero')
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Whether a valid JSON text has more than `limit` containers inside one another. Stops at the first that is too deep. */
export function isDeeper(bytes: Uint8Array, limit: number): boolean {
  return opensMore(bytes, limit) && nestsDeeper(bytes, limit)
}

/** So many containers have so many opening bytes: most bodies have few, and the search for them is native. */
function opensMore(bytes: Uint8Array, limit: number): boolean {
  let openings = 0
  for (const opening of [0x7b, 0x5b]) {
    for (let at = bytes.indexOf(opening); at >= 0; at = bytes.indexOf(opening, at + 1)) {
      if (++openings > limit) return true
    }
  }
  return false
}

function nestsDeeper(bytes: Uint8Array, limit: number): boolean {
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = stringEnd(bytes, at) - 1
    else if (opens(byte)) {
      if (++depth > limit) return true
    } else if (closes(byte)) depth--
  }
  return false
}

/** `{` or `[`. */
export function opens(byte: number | undefined): boolean {
  return byte === 0x7b || byte === 0x5b
}

/** `}` or `]`. */
export function closes(byte: number | undefined): boolean {
  return byte === 0x7d || byte === 0x5d
}

/** Index behind the closing quote of the string that starts at `start`. */
export function stringEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at + 1
}
