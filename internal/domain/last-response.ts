/** Of an answer of a destination, what its dead letter keeps (docs/reference/api.md, "Dead letters"), bytes of UTF-8. */
export const MAX_LAST_RESPONSE_BYTES = 1024

/** The beginning of `body` as Postgres can store it, whole characters only. null: nothing was answered. */
export function lastResponseOf(body: string | null): string | null {
  if (body === null || body === '') return null
  const storable = body.toWellFormed().replaceAll('\0', '\ufffd')
  const bytes = Buffer.from(storable.slice(0, MAX_LAST_RESPONSE_BYTES))
  if (bytes.length <= MAX_LAST_RESPONSE_BYTES) return bytes.toString()
  return bytes.subarray(0, endOfCharacter(bytes, MAX_LAST_RESPONSE_BYTES)).toString()
}

/** The last position up to `limit` at which no character is cut. */
function endOfCharacter(bytes: Uint8Array, limit: number): number {
  let end = limit
  // 10xxxxxx goes on with the character before it.
  while (((bytes[end] ?? 0) & 0b1100_0000) === 0b1000_0000) end--
  return end
}
