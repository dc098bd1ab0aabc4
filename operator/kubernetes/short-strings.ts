const QUOTE = '"'.charCodeAt(0)
const BACKSLASH = '\\'.charCodeAt(0)
const U = 'u'.charCodeAt(0)
/** Of `\u` behind it. */
const HEX_DIGITS = 4

/**
 * The JSON text of `bytes`, in which each string ends after about `longest` bytes of its source; names of members are strings
 * too. What is cut off is let go as it comes: a text of some MB takes no more memory than what stays of it.
 */
export async function withShortStrings(bytes: AsyncIterable<Uint8Array>, longest: number): Promise<string> {
  const cut = stringCutter(longest)
  const kept: Uint8Array[] = []
  for await (const chunk of bytes) kept.push(cut(chunk))
  return Buffer.concat(kept).toString()
}

/** Tells of each chunk in turn what stays. */
function stringCutter(longest: number): (chunk: Uint8Array) => Uint8Array {
  let isInString = false
  let length = 0
  let isCut = false
  // An escape is never cut in two.
  let isEscape = false
  let hexLeft = 0

  const stays = (byte: number): boolean => {
    if (!isInString) {
      isInString = byte === QUOTE
      length = 0
      isCut = false
      return true
    }
    length++
    if (isEscape) {
      isEscape = false
      if (byte === U) hexLeft = HEX_DIGITS
    } else if (hexLeft > 0) hexLeft--
    else if (byte === QUOTE) {
      isInString = false
      return true
    } else {
      isCut ||= length > longest
      isEscape = byte === BACKSLASH
    }
    return !isCut
  }

  // A copy: a slice would keep all of the chunk.
  return (chunk) => chunk.filter(stays)
}
