/** UUIDs as 16 bytes: how packs and records carry them. */

const digits = new Int8Array(128).fill(-1)
for (let i = 0; i < 16; i++) {
  digits[i.toString(16).charCodeAt(0)] = i
  digits[i.toString(16).toUpperCase().charCodeAt(0)] = i
}

function digitAt(uuid: string, index: number): number {
  const digit = digits[uuid.charCodeAt(index)]
  if (digit === undefined || digit < 0) throw new RangeError(`not a UUID: ${JSON.stringify(uuid)}`)
  return digit
}

/** Writes the 16 bytes of a UUID's text (either case). Throws RangeError when the text is none. */
export function writeUuid(target: Uint8Array, offset: number, uuid: string): void {
  const dashed = uuid[8] === '-' && uuid[13] === '-' && uuid[18] === '-' && uuid[23] === '-'
  if (uuid.length !== 36 || !dashed) throw new RangeError(`not a UUID: ${JSON.stringify(uuid)}`)
  let source = 0
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) source++
    target[offset + i] = (digitAt(uuid, source) << 4) | digitAt(uuid, source + 1)
    source += 2
  }
}

const characters = Buffer.from('0123456789abcdef', 'latin1')
const text = Buffer.alloc(36, '-')

/**
 * The lower-case text of the 16 bytes at `offset` (RFC 9562, section 4).
 *
 * It is decoded in one piece. Joined of five slices it would stay a chain of small strings for as long as an item waits: 300 B an
 * item, and twice the time.
 */
export function readUuid(source: Uint8Array, offset: number): string {
  let target = 0
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) target++
    const byte = source[offset + i] as number
    text[target++] = characters[byte >> 4] as number
    text[target++] = characters[byte & 15] as number
  }
  return text.toString('latin1')
}
