import fc, { type Arbitrary } from 'fast-check'

/** Values for schemas of the OpenAPI document: those that fit, and those that nearly do. */

export interface FuzzSchema {
  $ref?: string
  anyOf?: FuzzSchema[]
  /** Of one member: what is shared, and told anew there. */
  allOf?: [FuzzSchema]
  type?: string
  nullable?: boolean
  enum?: unknown[]
  properties?: Record<string, FuzzSchema>
  required?: string[]
  additionalProperties?: false | FuzzSchema
  items?: FuzzSchema
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  pattern?: string
  format?: string
}

export type Resolve = (ref: string) => FuzzSchema

/** No host but this machine is ever named. */
const destinations = [
  'http://127.0.0.1:9/',
  'https://[::1]:9/hook',
  'HTTP://127.1:9',
  'http://127.0.0.1:9/?q=1#f',
]

/** Names and values that have broken services before. */
const nasty: readonly unknown[] = [
  ...[
    '',
    ' ',
    '\u0000',
    '\ud800',
    '__proto__',
    'constructor',
    '..',
    '%2f',
    '\r\nX: y',
    'x'.repeat(2000),
    '[redacted]',
  ],
  ...[null, true, -1, 0, 1.5, 1e308, Number.MAX_SAFE_INTEGER, [], {}, [[]], { toString: 1 }],
]

/** Values that fit the schema, as far as patterns can be followed. */
export function fitting(schema: FuzzSchema, resolve: Resolve): Arbitrary<unknown> {
  if (schema.$ref !== undefined) return fitting(resolve(schema.$ref), resolve)
  const values = valuesOf(schema, resolve)
  return schema.nullable ? fc.oneof({ weight: 4, arbitrary: values }, fc.constant(null)) : values
}

function valuesOf(schema: FuzzSchema, resolve: Resolve): Arbitrary<unknown> {
  const several = schema.anyOf ?? schema.allOf
  if (several !== undefined) return fc.oneof(...several.map((each) => fitting(each, resolve)))
  return schema.enum ? fc.constantFrom(...schema.enum) : byType(schema, resolve)
}

function byType(schema: FuzzSchema, resolve: Resolve): Arbitrary<unknown> {
  switch (schema.type) {
    case 'object':
      return objects(schema, resolve)
    case 'array':
      return fc.array(fitting(schema.items ?? {}, resolve), { minLength: schema.minItems ?? 0, maxLength: 3 })
    case 'integer':
      return fc.integer({
        min: schema.minimum ?? -(2 ** 31),
        max: Math.min(schema.maximum ?? 2 ** 31, 2 ** 31),
      })
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e6, max: schema.maximum ?? 1e6, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'string':
      return texts(schema)
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

function objects({ properties = {}, required = [], additionalProperties }: FuzzSchema, resolve: Resolve) {
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [name, fitting(member, resolve)]),
  )
  const known = fc.record(members, { requiredKeys: required })
  if (typeof additionalProperties !== 'object') return known
  const names = fc.stringMatching(/^[A-Za-z-]{1,12}$/)
  return fc.dictionary(names, fitting(additionalProperties, resolve), { maxKeys: 3 })
}

function texts({ format, pattern, minLength = 0, maxLength = 64 }: FuzzSchema): Arbitrary<string> {
  if (format === 'uri') return fc.constantFrom(...destinations)
  const longest = Math.min(maxLength, 64)
  if (pattern === undefined || /\\x00/.test(pattern)) {
    return fc.string({ minLength, maxLength: longest, unit: 'grapheme' })
  }
  return fc.stringMatching(new RegExp(pattern), { maxLength: longest })
}

/** The value with one thing wrong: a member changed, lost or added, at any depth. */
export function mutated(values: Arbitrary<unknown>): Arbitrary<unknown> {
  const change = fc.record({
    where: fc.array(fc.nat(20), { maxLength: 3 }),
    how: fc.constantFrom('replace', 'lose', 'add'),
    what: fc.oneof(fc.constantFrom(...nasty), fc.jsonValue({ maxDepth: 2 })),
  })
  return fc.tuple(values, change).map(([value, { where, how, what }]) => changed(value, where, how, what))
}

function changed(value: unknown, where: readonly number[], how: string, what: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return what
  const entries = Object.entries(value)
  const [at = 0, ...rest] = where
  const chosen = entries[at % Math.max(entries.length, 1)]
  if (how === 'add' || chosen === undefined) {
    return Object.fromEntries([...entries, [typeof what === 'string' ? what : 'extra', what]])
  }
  const [name, member] = chosen
  const others = entries.filter(([other]) => other !== name)
  if (how === 'lose' && rest.length === 0) return Object.fromEntries(others)
  return Object.fromEntries([...others, [name, rest.length > 0 ? changed(member, rest, how, what) : what]])
}

/** Text that is no JSON, or hardly. */
export const brokenTexts = fc.constantFrom(
  ...[
    '',
    '{',
    'null',
    '[]',
    '"x"',
    '{"a":1,}',
    '\ufeff{}',
    '{"a":1}{"a":2}',
    `{"a":${'['.repeat(70)}${']'.repeat(70)}}`,
  ],
  ...[
    `${'['.repeat(100_000)}`,
    '{"__proto__":{"x":1}}',
    '{"a":1e400}',
    '{"a":"\\ud800"}',
    '{"name":1,"name":2}',
  ],
)
