/** What the schema of a buffer's configuration is put together from (`buffer-schema.ts`). */
import { HEADER_NAME_MAX_LENGTH, HEADER_NAME_PATTERN } from './header-names.ts'
import {
  IDENTIFIER_MAX_LENGTH,
  IDENTIFIER_PATTERN,
  IDENTIFIER_RULE,
  reservedIdentifiers,
} from './identifiers.ts'

/** The subset of JSON Schema that the configuration is written in. */
export interface Schema {
  /** Name of the object, and of its component in the OpenAPI document. An enumeration may have one. */
  readonly title?: string
  readonly type: 'object' | 'string' | 'integer' | 'number' | 'boolean'
  readonly description: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: false | Schema
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly not?: { readonly enum: readonly string[] }
  readonly format?: 'uri'
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxProperties?: number
}

export function integer(description: string, minimum: number, maximum: number, initial: number): Schema {
  return { type: 'integer', description, minimum, maximum, default: initial }
}

export function identifier(what: string): Schema {
  return {
    type: 'string',
    description: `${what}: ${IDENTIFIER_RULE}.`,
    minLength: 1,
    maxLength: IDENTIFIER_MAX_LENGTH,
    pattern: IDENTIFIER_PATTERN,
    not: { enum: reservedIdentifiers },
  }
}

export function headerName(description: string, initial?: string): Schema {
  const schema: Schema = {
    type: 'string',
    description,
    minLength: 1,
    maxLength: HEADER_NAME_MAX_LENGTH,
    pattern: HEADER_NAME_PATTERN,
  }
  return initial === undefined ? schema : { ...schema, default: initial }
}

export function secret(description: string): Schema {
  return { type: 'string', description, minLength: 1, maxLength: 1024 }
}

export function object(
  title: string,
  description: string,
  properties: Record<string, Schema>,
  extra: Pick<Schema, 'required' | 'default'> = {},
): Schema {
  return { title, type: 'object', description, properties, additionalProperties: false, ...extra }
}

/** A path would find no name with a blank at an end, and no dot behind a backslash, for ever: better refused. */
const NAME_CHARACTER = '[^.*\\[\\]\\\\]'
const NAME_END = '[^.*\\[\\]\\\\ \\t\\n\\v\\f\\r]'

export function bodyPath(description: string): Schema {
  return {
    type: 'string',
    description: `${description} in dot notation, for example $.data.customer: "$", then one or more ".name". A name with a dot, a bracket, "*", a backslash, or a blank at an end cannot be addressed. An element of an array is named by its index.`,
    maxLength: 512,
    pattern: `^\\$(\\.${NAME_END}(${NAME_CHARACTER}*${NAME_END})?)+$`,
  }
}
