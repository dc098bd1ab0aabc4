/**
 * Caller-chosen identifiers of customers, projects and buffers (docs/reference/api.md, "Conventions"). The alphabet
 * has no character with a meaning in URLs, broker subjects or SQL, so an identifier is safe wherever it is put.
 */
import { accept, type Parsed, refuse } from './parsed.ts'

export const IDENTIFIER_MAX_LENGTH = 128
export const IDENTIFIER_PATTERN = '^[A-Za-z0-9._-]+$'
/** They match the alphabet, but every URL parser resolves them away. */
export const reservedIdentifiers: readonly string[] = ['.', '..']
export const IDENTIFIER_RULE = `1 to ${IDENTIFIER_MAX_LENGTH} characters of A-Z, a-z, 0-9, ".", "_" and "-", not "." or ".."`

const alphabet = new RegExp(IDENTIFIER_PATTERN)

export function isIdentifier(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length <= IDENTIFIER_MAX_LENGTH &&
    alphabet.test(value) &&
    !reservedIdentifiers.includes(value)
  )
}

/** Reads an identifier out of a request; the error names `field`. */
export function parseIdentifier(field: string, value: unknown): Parsed<string> {
  if (value === undefined || value === null) return refuse(`${field} is required`)
  if (!isIdentifier(value)) return refuse(`${field} must be ${IDENTIFIER_RULE}`)
  return accept(value)
}

/**
 * The `n`th candidate (n >= 1) for the id of a clone: `<id>-copy`, `<id>-copy-2`, … (docs/reference/api.md,
 * "Buffers"). An id that would grow too long loses its own end, never the suffix, so candidates stay distinct.
 */
export function cloneIdentifier(bufferId: string, n: number): string {
  const suffix = n === 1 ? '-copy' : `-copy-${n}`
  return bufferId.slice(0, IDENTIFIER_MAX_LENGTH - suffix.length) + suffix
}
