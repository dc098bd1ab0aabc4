/** The source bytes of a member: what is passed on is never serialised anew. */
import { closes, opens, stringEnd } from './json.ts'

const COLON = 0x3a
const COMMA = 0x2c
const QUOTE = 0x22

/**
 * The bytes of the value of member `name` of `bytes`, a valid JSON text that is an object; undefined when it has
 * none. As in `JSON.parse`, the last of duplicate names wins, and escaped names count decoded. One pass.
 */
export function memberBytes(bytes: Uint8Array, name: string): Uint8Array | undefined {
  let found: Uint8Array | undefined
  let at = next(bytes, bytes.indexOf(0x7b) + 1)
  while (bytes[at] === QUOTE) {
    const nameEnd = stringEnd(bytes, at)
    const isIt = JSON.parse(Buffer.from(bytes.subarray(at, nameEnd)).toString()) === name
    const start = next(bytes, bytes.indexOf(COLON, nameEnd) + 1)
    const end = valueEnd(bytes, start)
    if (isIt) found = bytes.subarray(start, end)
    at = next(bytes, end)
    if (bytes[at] === COMMA) at = next(bytes, at + 1)
  }
  return found
}

/** Behind blanks. */
function next(bytes: Uint8Array, from: number): number {
  let at = from
  while ((bytes[at] ?? QUOTE) <= 0x20) at++
  return at
}

function valueEnd(bytes: Uint8Array, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = stringEnd(bytes, at) - 1
    else if (opens(byte)) depth++
    else if (closes(byte)) depth--
    if (closes(byte) && depth < 0) return trimmed(bytes, start, at)
    if (byte === COMMA && depth === 0) return trimmed(bytes, start, at)
  }
  return trimmed(bytes, start, bytes.length)
}

function trimmed(bytes: Uint8Array, start: number, end: number): number {
  let at = end
  while (at > start && (bytes[at - 1] ?? 0) <= 0x20) at--
  return at
}
