/** Numbers that `JSON.stringify` writes as a text says, such as `1e2` or `100.0`. */

/** ECMAScript 2026; the types of the compiler do not know it yet. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON: (text: string) => unknown
  isRawJSON: (value: unknown) => boolean
}

/** `text` must be a number in JSON; throws otherwise. No copy of the value keeps the spelling. */
export function number(text: string): unknown {
  if (typeof JSON.parse(text) !== 'number') throw new TypeError(`${text} is no number`)
  return rawJSON(text)
}

/** Whether `value` was made by `number`: it is an object to everybody but `JSON.stringify`. */
export function isNumber(value: unknown): boolean {
  return isRawJSON(value)
}
