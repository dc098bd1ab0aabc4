/** Values at and past everything that a schema demands of a field, made from the schema itself. */
import type { StructuralSchema } from '../../../operator/crd/structural.ts'
import { type Field, type Json, type Path, valueAt, withValue } from './fields.ts'

export interface Case {
  readonly what: string
  readonly accepted: boolean
  readonly resource: Json
}

interface Value {
  readonly what: string
  readonly accepted: boolean
  readonly value: unknown
}

/** Texts of a form: one of a given length that has it, and some that have not, not too long and not empty. */
interface Form {
  readonly text: (length: number) => string
  readonly broken: readonly string[]
}

const word: Form = { text: (length) => 'a'.repeat(length), broken: ['a b', 'ä', 'a/b'] }
/** By a piece of the pattern, or the format where there is none. */
const forms: readonly (readonly [string, Form])[] = [
  [
    '[Hh][Tt][Tt][Pp]',
    {
      text: after('https://h/'),
      broken: [
        'ftp://host/path',
        'host/path',
        'https:host',
        'http://#a',
        'http://h\\a',
        'http://h/a\tb',
        'http://h/\u000b',
      ],
    },
  ],
  ['^\\$', { text: after('$.a'), broken: ['customer', '$', '$.', '$..a', '$.a[0]', '$.*'] }],
  ['\\x00-\\x1f', { text: (length) => 'ä'.repeat(length), broken: ['a\nb', '\u007f'] }],
  [')?[A-Za-z0-9])', { text: (length) => 'a'.repeat(length), broken: ['-a', 'a.', 'a b', 'a/b/c'] }],
  ['(\\.[a-z0-9]', { text: (length) => 'a'.repeat(length), broken: ['UPPER', '-a', 'a..b', 'a/b'] }],
  ['[A-Za-z0-9_,:]', { text: (length) => 'a'.repeat(length), broken: ['1st', 'a b', 'Ends:'] }],
  [
    '\\x20-\\x7e',
    { text: (length) => 'ÿ~ '.repeat(length).slice(0, length), broken: ['Ā', 'a\nb', '\u0080'] },
  ],
  ['A-Z', word],
  ['date-time', { text: () => '2026-01-02T03:04:05Z', broken: ['yesterday', '2026-01-02'] }],
]

function after(start: string): (length: number) => string {
  return (length) => start + 'a'.repeat(length - start.length)
}

/** Fields that only together with others can be at their bounds: what else is set then. */
const companions: Readonly<Record<string, readonly [Path, unknown]>> = {
  'spec.throughput.backoff.initialMs': [['spec', 'throughput', 'backoff', 'maxMs'], 86_400_000],
  'spec.throughput.backoff.maxMs': [['spec', 'throughput', 'backoff', 'initialMs'], 0],
  // A map of 50 leaves no room for headers from Secrets, and the other way round.
  'spec.delivery.headers': [['spec', 'delivery', 'headersFrom'], undefined],
  'spec.delivery.headersFrom': [['spec', 'delivery', 'headers'], undefined],
}

/** Every case of one field, each the whole `base` with this field changed. */
export function casesOf({ path, schema, required }: Field, base: Json): Case[] {
  const companion = companions[path.join('.')]
  const beside = companion ? withValue(base, ...companion) : base
  const values = valuesOf(schema, valueAt(base, path)).map(({ what, accepted, value }) => ({
    what,
    accepted,
    resource: withValue(beside, path, value),
  }))
  if (!required) return values
  return [...values, { what: 'nothing', accepted: false, resource: withValue(base, path, undefined) }]
}

function valuesOf(schema: StructuralSchema, present: unknown): Value[] {
  return [
    refused(wrongType(schema)),
    ...(schema.type === 'boolean' ? [accepted(true), accepted(false)] : []),
    ...(schema.enum ? enumeration(schema.enum) : []),
    ...(schema.type === 'string' && !schema.enum ? texts(schema) : []),
    ...(schema.type === 'integer' || schema.type === 'number' ? numbers(schema) : []),
    ...(schema.type === 'array' ? entries(schema, present) : []),
    ...(schema.maxProperties === undefined ? [] : members(schema.maxProperties)),
  ]
}

function wrongType({ type }: StructuralSchema): unknown {
  if (type === 'string') return 7
  return type === 'object' || type === 'array' ? 'text' : 'true'
}

function enumeration(values: readonly string[]): Value[] {
  return [...values.map((value) => accepted(value)), refused('another'), refused('')]
}

function texts({ pattern, format, minLength, maxLength }: StructuralSchema): Value[] {
  const form = formOf(pattern ?? format)
  return [
    ...(maxLength === undefined ? [accepted(form.text(20))] : atMost(maxLength, form.text)),
    ...(minLength === undefined ? [] : [refused('')]),
    ...form.broken.map((text) => refused(text)),
  ]
}

function formOf(pattern: string | undefined): Form {
  if (pattern === undefined) return { text: word.text, broken: [] }
  const form = forms.find(([part]) => pattern.includes(part))
  if (form === undefined) throw new Error(`no texts are known for ${pattern}`)
  return form[1]
}

function numbers({ type, minimum, maximum, multipleOf }: StructuralSchema): Value[] {
  const whole = type === 'integer' || multipleOf === 1
  const step = whole ? 1 : 0.001
  return [
    ...(minimum === undefined ? [] : [accepted(minimum), refused(minimum - step)]),
    ...(maximum === undefined ? [] : [accepted(maximum), refused(maximum + step)]),
    ...(whole ? [refused((minimum ?? 0) + 0.5)] : []),
  ]
}

/** `present` holds one entry; the others get keys of their own. */
function entries(schema: StructuralSchema, present: unknown): Value[] {
  const [entry] = present as Json[]
  const [key] = schema['x-kubernetes-list-map-keys']!
  const list = (length: number) => Array.from({ length }, (_, n) => ({ ...entry, [key!]: `a${n}` }))
  const { maxItems } = schema
  return [
    ...(maxItems === undefined ? [] : atMost(maxItems, list)),
    { what: 'two entries of one key', accepted: false, value: [entry, entry] },
  ]
}

function members(most: number): Value[] {
  return atMost(most, (length) =>
    Object.fromEntries(Array.from({ length }, (_, n) => [`X-Header-${n}`, 'text'])),
  )
}

function atMost(length: number, make: (length: number) => unknown): Value[] {
  return [
    { what: `the length ${length}`, accepted: true, value: make(length) },
    { what: `the length ${length + 1}`, accepted: false, value: make(length + 1) },
  ]
}

function accepted(value: unknown): Value {
  return { what: JSON.stringify(value), accepted: true, value }
}

function refused(value: unknown): Value {
  return { what: JSON.stringify(value), accepted: false, value }
}
