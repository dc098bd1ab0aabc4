/** UUIDs as 16 bytes: how frames and records carry them. */

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

/** The lower-case text of 16 bytes. */
export function readUuid(source: Buffer, offset: number): string {
  const hex = source.toString('hex', offset, offset + 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
