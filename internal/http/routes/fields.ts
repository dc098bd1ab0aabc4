import { NAME_MAX_LENGTH } from '../../domain/names.ts'
import { identifier as identifierOf } from '../../domain/schema-parts.ts'
import type { Schema } from '../schemas/shape.ts'

/** Schemas of members and parameters that several rows share. */

/** As the domain judges it. */
export function identifier(what: string): Schema {
  return { ...identifierOf(what) }
}

export function name(maxLength: number = NAME_MAX_LENGTH): Schema {
  return { type: 'string', description: 'Name for people.', minLength: 1, maxLength }
}

/** `limit` of a list, 1 to `maximum`. */
export function limit(initial: number, maximum = 500): Schema {
  return { type: 'integer', description: 'Most entries to answer.', minimum: 1, maximum, default: initial }
}

/** Its component is named after the operation. */
export function body(
  description: string,
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = [],
): Schema {
  return { type: 'object', description, properties, required, additionalProperties: false }
}
