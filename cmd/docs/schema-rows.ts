/** JSON schemas as rows of a table: one row a member, nested members by their path (`batch.maxItems`, `items[].payload`). */
import type { Schema } from '../../internal/http/schemas/shape.ts'
import { code, grouped } from './table.ts'

export interface SchemaRow {
  readonly path: string
  /** As a reader understands it: `integer`, `list of string`, or the values of an enumeration. */
  readonly type: string
  /** `1 to 256 characters`; empty: none. */
  readonly bounds: string
  /** undefined: there is none. */
  readonly initial: unknown
  readonly required: boolean
  readonly meaning: string
}

export function schemaRows(schema: Schema): SchemaRow[] {
  return membersOf(schema, '')
}

function membersOf(schema: Schema, prefix: string): SchemaRow[] {
  const properties = (schema.properties ?? {}) as Record<string, Schema>
  const required = (schema.required ?? []) as string[]
  return Object.entries(properties).flatMap(([name, member]) => [
    rowOf(`${prefix}${name}`, member, required.includes(name)),
    ...nestedIn(member, `${prefix}${name}`),
  ])
}

function nestedIn(schema: Schema, path: string): SchemaRow[] {
  if (schema.type === 'array') return membersOf(schema.items as Schema, `${path}[].`)
  return membersOf(schema, `${path}.`)
}

function rowOf(path: string, schema: Schema, required: boolean): SchemaRow {
  return {
    path,
    type: typeOf(schema),
    bounds: boundsOf(schema),
    initial: schema.default,
    required,
    meaning: String(schema.description ?? ''),
  }
}

/** `type` and the values that it may have. */
export function typeOf(schema: Schema): string {
  const { nullable } = schema
  return nullable ? `${plainTypeOf(schema)} or null` : plainTypeOf(schema)
}

function plainTypeOf(schema: Schema): string {
  const { type, items, additionalProperties } = schema
  const values = schema.enum as string[] | undefined
  if (values) return code(...values)
  if (type === 'array') return `list of ${plainTypeOf(items as Schema)}`
  if (type === undefined) return 'any JSON'
  if (type === 'object' && typeof additionalProperties === 'object')
    return `object of ${plainTypeOf(additionalProperties as Schema)}`
  return String(type)
}

/** What a number, the length of a text or the size of a list may be. Patterns are told by descriptions. */
export function boundsOf(schema: Schema): string {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, maxProperties } = schema as Bounds
  const texts = [
    span(minimum, maximum, ''),
    span(minLength, maxLength, ' characters'),
    span(minItems, maxItems, ' entries'),
    span(undefined, maxProperties, ' members'),
  ]
  return texts.filter((text) => text !== '').join(', ')
}

type Bounds = Partial<
  Record<
    'minimum' | 'maximum' | 'minLength' | 'maxLength' | 'minItems' | 'maxItems' | 'maxProperties',
    number
  >
>

function span(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${grouped(least)} to ${grouped(most)}${unit}`
  if (most !== undefined) return `at most ${grouped(most)}${unit}`
  if (least === 1 && unit !== '') return 'not empty'
  return least === undefined ? '' : `at least ${grouped(least)}${unit}`
}
