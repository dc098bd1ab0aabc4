/**
 * Structural schemas: the dialect of JSON Schema in which a custom resource is defined. An API server refuses a
 * definition with closed objects, so `additionalProperties: false` goes: it prunes unknown fields itself, or
 * refuses them when asked for strict validation.
 */
import type { Schema } from '../../internal/domain/schema-parts.ts'

/** A rule in the Common Expression Language; `self` is the value that carries it, `oldSelf` what it was. */
export interface CelRule {
  readonly rule: string
  readonly message: string
  /** The member at fault, as `.name`, where that is not all that carries the rule. */
  readonly fieldPath?: string
}

export interface StructuralSchema {
  readonly type: Schema['type'] | 'array'
  readonly description: string
  readonly properties?: Readonly<Record<string, StructuralSchema>>
  readonly additionalProperties?: StructuralSchema
  readonly items?: StructuralSchema
  readonly required?: readonly string[]
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly format?: 'date-time' | 'int64'
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly multipleOf?: 1
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly 'x-kubernetes-list-type'?: 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'atomic'
  readonly 'x-kubernetes-validations'?: readonly CelRule[]
}

/**
 * The same constraints, defaults and descriptions in the other dialect. Names are those of clients of the API. A format
 * goes: an API server reads it by Go's mind. Values that are not allowed are a rule, which names the field.
 */
export function structural(schema: Schema): StructuralSchema {
  const { title: _title, format: _format, not, properties, additionalProperties, ...rest } = schema
  const same = {
    ...rest,
    ...(properties && { properties: mapValues(properties, structural) }),
    ...(additionalProperties && { additionalProperties: structural(additionalProperties) }),
  }
  return not === undefined ? same : ruled(same, noneOf(not.enum))
}

/** On a text. */
export function noneOf(values: readonly string[], message = `must not be ${values.join(' or ')}`): CelRule {
  return { rule: `!(self in ['${values.join("', '")}'])`, message }
}

/** An object whose members all must be there unless `required` says otherwise. */
export function object(
  description: string,
  properties: Record<string, StructuralSchema>,
  required: readonly string[] = Object.keys(properties),
): StructuralSchema {
  return { type: 'object', description, ...(required.length > 0 && { required }), properties }
}

/** A list of objects of which no two have the same `key`; appliers own its entries one by one. */
export function listByKey(
  description: string,
  key: string,
  maxItems: number,
  items: StructuralSchema,
): StructuralSchema {
  return {
    type: 'array',
    description,
    maxItems,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [key],
    items,
  }
}

/** `schema` with rules; they are judged after its defaults were filled in, its own default before. */
export function ruled(schema: StructuralSchema, ...rules: CelRule[]): StructuralSchema {
  return { ...schema, 'x-kubernetes-validations': [...(schema['x-kubernetes-validations'] ?? []), ...rules] }
}

/**
 * A whole number that rules may read. JSON may write one as 1e2 or 100.0, which an API server keeps as a float. Its
 * schema takes that for an integer, but its rules fail on it.
 */
export function readByRules(schema: StructuralSchema): StructuralSchema {
  if (schema.type !== 'integer') throw new Error(`not a whole number: ${schema.description}`)
  return { ...schema, type: 'number', multipleOf: 1 }
}

function mapValues<T, U>(members: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, map(member)]))
}
