import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseBufferCreate } from '../../internal/domain/buffer.ts'
import { bufferConfigSchema, bufferCreateSchema, bufferSchema } from '../../internal/domain/buffer-schema.ts'
import type { Schema } from '../../internal/domain/schema-parts.ts'
import { creation } from './sample-buffer.ts'

/** What a buffer does not have until it is set. */
const OPTIONAL = ['messageId', 'requireApiKey']

/** Every schema in the tree with its dotted path. */
function* fields(schema: Schema, path = ''): Generator<[path: string, schema: Schema]> {
  yield [path, schema]
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    yield* fields(member, path === '' ? name : `${path}.${name}`)
  }
  if (schema.additionalProperties) yield* fields(schema.additionalProperties, `${path}.*`)
}

const all = [...fields(bufferSchema)]
/** Set by the service alone. */
const readOnly = ['consecutiveDlqCount', 'pausedReason', 'pausedAt', 'createdAt', 'updatedAt']

describe('the schema of a buffer', () => {
  it('describes every field', () => {
    for (const [path, schema] of all) expect(schema.description, path).to.match(/\S{3,}/)
  })

  it('bounds every string, number and map, as the CRD needs', () => {
    for (const [path, schema] of all.filter(([path]) => !readOnly.includes(path))) {
      if (schema.type === 'string') expect(schema.enum ?? schema.maxLength, path).not.to.equal(undefined)
      if (schema.type === 'integer' || schema.type === 'number') {
        expect(schema, path).to.include.keys('minimum', 'maximum')
      }
      if (schema.type === 'object' && !schema.properties) expect(schema.maxProperties, path).to.be.above(0)
    }
  })

  it('refuses unknown fields in every object with named members', () => {
    for (const [path, schema] of all.filter(([, schema]) => schema.properties)) {
      expect(schema.additionalProperties, path).to.equal(false)
    }
  })

  it('has defaults that its own bounds allow', () => {
    const parsed = parseBufferCreate(creation())
    expect(parsed.ok && Object.keys(parsed.value.config)).to.have.members(
      Object.keys(bufferConfigSchema.properties ?? {}).filter((name) => !OPTIONAL.includes(name)),
    )
  })

  it('names the same members for creation and storage', () => {
    const created = Object.keys(bufferCreateSchema.properties ?? {})
    const stored = Object.keys(bufferSchema.properties ?? {})
    expect(stored).to.have.members([...created, ...readOnly])
    const always = stored.filter((name) => ![...OPTIONAL, 'pausedReason', 'pausedAt'].includes(name))
    expect(bufferSchema.required).to.have.members(always)
  })

  it('is plain data, so documents can be derived from it', () => {
    expect(JSON.parse(JSON.stringify(bufferSchema))).to.deep.equal(bufferSchema)
  })
})
