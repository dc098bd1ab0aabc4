/** What a schema found wrong with an input, in words (docs/architecture/protocol.md, "Admin requests"). */
import type { ErrorObject } from 'ajv'

/** Problems that one answer tells; of a body of strangers nobody reads more. */
const MOST = 20

/**
 * Every problem, each naming its field as a caller writes it and what is allowed there. The validator must be
 * `verbose`, and tells all only with `allErrors`. Throws without an error: validation failed for no reason.
 */
export function faultsOf(errors: readonly ErrorObject[] | null | undefined): string[] {
  if (!errors?.length) throw new Error('validation failed without an error')
  const problems = new Map<string, string>()
  for (const error of errors) {
    const field = fieldOf(error)
    // What else is wrong with a field follows from the first, or is told after that is mended.
    if (!problems.has(field)) problems.set(field, `${shorten(field)} ${saying(error)}`)
  }
  return [...problems.values()]
}

/** Every problem in one line. */
export function describeFaults(errors: readonly ErrorObject[] | null | undefined): string {
  return joinProblems(faultsOf(errors))
}

/** Problems as the one text of an answer. */
export function joinProblems(problems: readonly string[]): string {
  const told = problems.slice(0, MOST).join('; ')
  return problems.length <= MOST ? told : `${told}; and ${problems.length - MOST} more`
}

/** `batch.maxItems`; the whole is called `body`. */
function fieldOf({ instancePath, keyword, params }: ErrorObject): string {
  const path = instancePath.split('/').slice(1).map(unescapePointer)
  if (keyword === 'required') path.push(params.missingProperty)
  if (keyword === 'additionalProperties') path.push(params.additionalProperty)
  return path.length === 0 ? 'body' : path.map(named).join('.')
}

/** A member's name as a text can show it. */
export function named(name: string): string {
  return name === '' ? '""' : name
}

function saying({ keyword, params, parentSchema }: ErrorObject): string {
  const schema: Record<string, unknown> = parentSchema ?? {}
  switch (keyword) {
    case 'required':
      return 'is required'
    case 'additionalProperties':
      return 'is not a known field'
    case 'enum':
      return `must be one of: ${params.allowedValues.join(', ')}`
    case 'storable':
      return 'has a character that is not allowed'
    case 'type':
    case 'minimum':
    case 'maximum':
      return `must be ${article(String(schema.type))}${range(schema.minimum, schema.maximum)}`
    case 'minLength':
    case 'maxLength':
      if (schema.minLength === 1 && schema.maxLength === undefined) return 'must not be empty'
      return `must have ${amount(schema.minLength, schema.maxLength)} characters`
    case 'minItems':
    case 'maxItems':
      return `must have ${amount(schema.minItems, schema.maxItems)} entries`
    case 'minProperties':
    case 'maxProperties':
      return `must have ${amount(schema.minProperties, schema.maxProperties)} members`
    case 'pattern':
    case 'not':
      return `is not valid${schema.description === undefined ? '' : `. ${schema.description}`}`
    default:
      return 'is not valid'
  }
}

function article(type: string): string {
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
}

function range(from: unknown, to: unknown): string {
  if (from === undefined && to === undefined) return ''
  return to === undefined ? ` of at least ${from}` : ` from ${from ?? 0} to ${to}`
}

function amount(from: unknown, to: unknown): string {
  if (to === undefined) return `at least ${from}`
  return from === undefined ? `at most ${to}` : `${from} to ${to}`
}

function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** A caller's own 10 kB name is not sent back whole. */
export function shorten(field: string): string {
  return field.length <= 200 ? field : `${field.slice(0, 200)}…`
}
