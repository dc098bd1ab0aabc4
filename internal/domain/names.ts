/** Names of customers, projects and API keys: text for people, which every store and terminal can hold. */
import { accept, type Parsed, refuse } from './parsed.ts'

/** Longest name of a customer or project, characters; as a buffer's. */
export const NAME_MAX_LENGTH = 256

/** Reads a name of 1 to `maxLength` characters without control characters; the error names `field`. */
export function parseName(
  field: string,
  value: unknown,
  maxLength: number = NAME_MAX_LENGTH,
): Parsed<string> {
  if (value === undefined || value === null) return refuse(`${field} is required`)
  if (typeof value !== 'string') return refuse(`${field} must be a string`)
  const length = [...value].length
  if (length < 1 || length > maxLength) return refuse(`${field} must have 1 to ${maxLength} characters`)
  // A lone surrogate has no UTF-8, and NUL no place in Postgres.
  if (/\p{Cc}/u.test(value) || !value.isWellFormed()) {
    return refuse(`${field} must not contain control characters or broken Unicode`)
  }
  return accept(value)
}
