/** Every field that the schema of a buffer has is in the vectors, in the definition and in a sample. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseAllDocuments } from 'yaml'
import { bufferCreateSchema } from '../../../internal/domain/buffer-schema.ts'
import type { Schema } from '../../../internal/domain/schema-parts.ts'
import { type BufferVector, bodyOf, bufferVectors } from '../../support/buffer-vectors.ts'
import { fieldsOf, type Json, valueAt } from './fields.ts'
import { samples } from './site.ts'
import { fieldOfResource } from './vector-resource.ts'

/** The API key says whose the buffer is. */
const NOT_OF_THE_RESOURCE = ['customerId']

/** Another's customerId is refused in all its lengths; a URL of one character is none. */
const UNREACHABLE = ['customerId: maxLength', 'customerId: minLength', 'delivery.url: minLength']

const documents = bufferVectors.documents.map((vector) => ({
  vector,
  // Numbers as they are read, whatever their spelling.
  body: JSON.parse(JSON.stringify(bodyOf(vector, 'acme'))) as Json,
}))

const all = [...fields(bufferCreateSchema)]

function* fields(schema: Schema, path: readonly string[] = []): Generator<[field: string, schema: Schema]> {
  if (path.length > 0) yield [path.join('.'), schema]
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    yield* fields(member, [...path, name])
  }
  if (schema.additionalProperties) yield* fields(schema.additionalProperties, [...path, '*'])
}

describe('every field of a buffer', () => {
  it('has a document in which it is taken, and one in which it is at fault', () => {
    for (const [field] of all) {
      expect(valuesOf(field, 'taken'), `taken: ${field}`).not.to.deep.equal([])
      expect(refusedFor(field), `refused: ${field}`).not.to.deep.equal([])
    }
  })

  it('has documents at its bounds and just outside', () => {
    for (const [field, schema] of all) {
      for (const { bound, isAt, isOutside } of boundsOf(schema)) {
        const what = `${field}: ${bound}`
        if (UNREACHABLE.includes(what)) continue
        expect(valuesOf(field, 'taken').some(isAt), `at ${what}`).to.equal(true)
        expect(refusedValuesOf(field).some(isOutside), `outside ${what}`).to.equal(true)
      }
    }
  })

  it('has a document for each of its values, and one for another', () => {
    for (const [field, schema] of all) {
      if (schema.enum === undefined) continue
      expect(valuesOf(field, 'taken'), field).to.include.members([...schema.enum])
      expect(refusedValuesOf(field).some((value) => typeof value === 'string' && value !== '')).to.equal(true)
    }
  })

  it('has documents of another type, and of null', () => {
    for (const [field, { type }] of all) {
      const kinds = refusedValuesOf(field).map(kindOf)
      expect(kinds, field).to.include('null')
      expect(
        kinds.some((kind) => kind !== 'null' && kind !== type),
        field,
      ).to.equal(true)
    }
  })

  it('has documents of different names, and of reasons that are explained', () => {
    const names = documents.map(({ vector }) => vector.name)
    expect(names).to.have.lengthOf(new Set(names).size)
    const reasons = documents.flatMap(({ vector }) => vector.because ?? [])
    expect([...new Set(reasons)]).to.have.members(Object.keys(bufferVectors.reasons))
  })

  it('is in the definition', () => {
    const known = fieldsOf('spec').map(({ path }) => path.slice(1).join('.'))
    for (const [field] of ofTheResource()) expect(known).to.include(fieldOfResource(field), field)
  })

  it('is in a sample', () => {
    const specs = readdirSync(samples)
      .flatMap((file) => parseAllDocuments(readFileSync(join(samples, file), 'utf8')))
      .map((document) => (document.toJS() as Json).spec)
    for (const [field] of ofTheResource()) {
      const shown = specs.map((spec) => valueAt(spec, fieldOfResource(field).split('.')))
      expect(
        shown.filter((value) => value !== undefined),
        field,
      ).not.to.deep.equal([])
    }
  })
})

function ofTheResource() {
  return all.filter(([field]) => !NOT_OF_THE_RESOURCE.includes(field))
}

/** What the documents of that verdict have there. */
function valuesOf(field: string, verdict: BufferVector['verdict']): unknown[] {
  return documents
    .filter(({ vector }) => vector.verdict === verdict)
    .flatMap(({ body }) => valuesAt(body, field))
}

/** `*` stands for each member of a map. */
function valuesAt(body: Json, field: string): unknown[] {
  const place = field.replace(/\.\*$/, '')
  const value = valueAt(body, place.split('.'))
  if (place !== field) return Object.values((value ?? {}) as Json)
  return value === undefined ? [] : [value]
}

function refusedFor(field: string) {
  return documents.filter(
    ({ vector }) => vector.verdict === 'refused' && vector.field === field.replace(/\.\*$/, ''),
  )
}

function refusedValuesOf(field: string): unknown[] {
  return refusedFor(field).flatMap(({ body }) => valuesAt(body, field))
}

interface Bound {
  readonly bound: string
  readonly isAt: (value: unknown) => boolean
  readonly isOutside: (value: unknown) => boolean
}

function boundsOf(schema: Schema): Bound[] {
  const { type } = schema
  const size = (value: unknown) => sizeOf(value, type)
  const upper = (['maximum', 'maxLength', 'maxProperties'] as const).flatMap((bound) => {
    const most = schema[bound]
    if (most === undefined) return []
    const isOutside = (value: unknown) => size(value) > most && size(value) <= most + 1
    return [{ bound, isAt: (value: unknown) => size(value) === most, isOutside }]
  })
  const lower = (['minimum', 'minLength'] as const).flatMap((bound) => {
    const least = schema[bound]
    if (least === undefined) return []
    const isOutside = (value: unknown) => size(value) < least && size(value) >= least - 1
    return [{ bound, isAt: (value: unknown) => size(value) === least, isOutside }]
  })
  return [...upper, ...lower]
}

/** A number itself, the characters of a text, the members of a map; NaN of another type. */
function sizeOf(value: unknown, type: Schema['type']): number {
  if (typeof value === 'number') return value
  if (typeof value === 'string' && type === 'string') return [...value].length
  if (type === 'object' && typeof value === 'object' && value !== null) return Object.keys(value).length
  return Number.NaN
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}
