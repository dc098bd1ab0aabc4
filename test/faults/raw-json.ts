/**
 * Where the values of a JSON text stand, byte for byte: nothing is parsed and printed anew. The text must be valid
 * JSON; the caller parses it as well.
 */

/** The raw texts of the members of the object that begins at `text[start]`, blanks around them included. */
export function rawMembers(text: string, start = 0): [name: string, raw: string][] {
  return parts(text, start).map(([from, to]) => {
    const nameFrom = skipBlanks(text, from)
    const nameTo = stringEnd(text, nameFrom)
    const colon = text.indexOf(':', nameTo)
    return [JSON.parse(text.slice(nameFrom, nameTo)) as string, text.slice(colon + 1, to)]
  })
}

/** The raw texts of the elements of the array that begins at `text[start]`, blanks around them included. */
export function rawElements(text: string, start = 0): string[] {
  return parts(text, start).map(([from, to]) => text.slice(from, to))
}

/** From and to of each part between the commas of the container that begins at `start`; none when it is empty. */
function parts(text: string, start: number): [number, number][] {
  const found: [number, number][] = []
  let depth = 0
  let from = start + 1
  for (let at = start; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = stringEnd(text, at) - 1
    else if (char === '{' || char === '[') depth++
    else if (char === ',' && depth === 1) {
      found.push([from, at])
      from = at + 1
    } else if ((char === '}' || char === ']') && --depth === 0) {
      if (found.length > 0 || skipBlanks(text, from) < at) found.push([from, at])
      return found
    }
  }
  throw new Error('the text ends within a container')
}

/** Behind the closing quote of the string that begins at `start`. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  throw new Error('the text ends within a string')
}

function skipBlanks(text: string, start: number): number {
  let at = start
  while (' \t\r\n'.includes(text[at] ?? 'x')) at++
  return at
}
