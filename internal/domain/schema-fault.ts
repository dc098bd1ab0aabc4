/** What a schema found wrong with an input, in words (design: bad input gets an error that names the field). */
import type { ErrorObject } from 'ajv'

/** One line that names the field as a caller writes it. Throws without an error: validation failed for no reason. */
export function describeFault(error: ErrorObject | undefined): string {
  if (!error) throw new Error('validation failed without an error')
  const path = error.instancePath.split('/').slice(1).map(unescapePointer)
  const field = (name?: string) =>
    shorten([...path, ...(name === undefined ? [] : [name])].join('.') || 'body')
  switch (error.keyword) {
    case 'required':
      return `${field(error.params.missingProperty)} is required`
    case 'additionalProperties':
      return `${field(error.params.additionalProperty)} is not a known field`
    case 'enum':
      return `${field()} must be one of: ${error.params.allowedValues.join(', ')}`
    case 'storable':
      return `${field()} has a character that is not allowed`
    case 'pattern':
    case 'not':
      return `${field()} is not valid. ${error.parentSchema?.description}`
    case 'type':
      return `${field()} must be ${/^[aeiou]/.test(error.params.type) ? 'an' : 'a'} ${error.params.type}`
    case 'minLength':
      return `${field()} must not be empty`
    case 'maxLength':
      return `${field()} must have at most ${error.params.limit} characters`
    case 'maxProperties':
      return `${field()} must have at most ${error.params.limit} members`
    default:
      return `${field()} ${error.message}`
  }
}

function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** A caller's own 10 kB name is not sent back whole. */
export function shorten(field: string): string {
  return field.length <= 200 ? field : `${field.slice(0, 200)}…`
}
