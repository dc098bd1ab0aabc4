import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { bufferConfigSchema } from '../../../internal/domain/buffer-schema.ts'
import { CRD_FILE_NAME, crdDocument } from '../../../operator/crd/document.ts'
import type { StructuralSchema } from '../../../operator/crd/structural.ts'
import { casesOf } from './cases.ts'
import { fieldsOf, fullResource, fullStatus, resourceSchema } from './fields.ts'
import { changed, ruleCases, rulesOfTheDefinition } from './rule-cases.ts'
import { isOfTheService, refusalOf } from './service-side.ts'

const crds = join(import.meta.dirname, '..', '..', '..', 'crds')
const all = [...fieldsOf('spec'), ...fieldsOf('status')]

describe('the definition of the Buffer resource', () => {
  it('is checked in as it is made; else: npm run crd', () => {
    expect(readFileSync(join(crds, CRD_FILE_NAME), 'utf8')).to.equal(crdDocument())
  })

  it('describes every field', () => {
    for (const { path, schema } of all) expect(schema.description, path.join('.')).to.match(/^.{4,}\.$/)
  })

  it('bounds every text, list and map, or the cost of its rules has no bound', () => {
    for (const { path, schema } of all) {
      const field = path.join('.')
      if (schema.type === 'string' && !schema.enum && schema.format !== 'date-time') {
        expect(schema.maxLength, field).to.be.above(0)
      }
      if (schema.type === 'array') expect(schema.maxItems, field).to.be.above(0)
      if (schema.additionalProperties) expect(schema.maxProperties, field).to.be.above(0)
    }
  })

  it('has no integer that a rule reads: rules fail on one that is written as 1e2', () => {
    for (const { path, schema } of all) {
      for (const { rule } of schema['x-kubernetes-validations'] ?? []) {
        for (const [, member] of rule.replaceAll(/has\([^)]*\)/g, '').matchAll(/self\.([\w.]+)/g)) {
          const read = memberSchema(schema, member!.split('.'))
          expect(read?.type, `${path.join('.')}: ${rule}`).not.to.equal('integer')
        }
      }
    }
  })

  it('has every member of a configuration, the name as displayName', () => {
    const expected = Object.keys(bufferConfigSchema.properties!).map((name) =>
      name === 'name' ? 'displayName' : name,
    )
    expect(Object.keys(resourceSchema.properties!.spec!.properties!)).to.include.members(expected)
  })

  it('has no place for a secret', () => {
    const names = all.map(({ path }) => path.at(-1))
    expect(names).to.include('secretKeyRef')
    expect(names).not.to.include.oneOf(['secret', 'signingSecret', 'previousSecret', 'apiKey'])
    // Whose the buffer is, its key says; the status only tells it.
    expect(fieldsOf('spec').map(({ path }) => path.at(-1))).not.to.include('customerId')
  })
})

/** The deepest member on the path: what follows it is a function. */
function memberSchema(schema: StructuralSchema, path: readonly string[]): StructuralSchema | undefined {
  return path.reduce<StructuralSchema | undefined>(
    (found, name) => found?.properties?.[name] ?? found,
    schema,
  )
}

describe('what the definition accepts and refuses', () => {
  for (const field of fieldsOf('spec').filter(({ path }) => isOfTheService(path))) {
    it(`is what the service does: ${field.path.join('.')}`, () => {
      for (const { what, accepted, resource } of casesOf(field, fullResource())) {
        expect(refusalOf(resource) === null, `${what}: ${refusalOf(resource)}`).to.equal(accepted)
      }
    })
  }

  for (const { field, message, accepted, refused } of ruleCases.filter(({ own }) => !own)) {
    it(`is what the service does: ${field || 'the resource'} ${message}`, () => {
      for (const change of accepted) {
        expect(refusalOf(changed(change)), JSON.stringify(change)).to.equal(null)
      }
      for (const change of refused) {
        expect(refusalOf(changed(change)), JSON.stringify(change)).to.be.a('string')
      }
    })
  }

  it('has cases for every rule', () => {
    const known = ruleCases.map(({ field, message }) => `${field}: ${message}`)
    expect(known).to.have.members(rulesOfTheDefinition())
  })

  it('covers every field of both parts', () => {
    const base = { ...fullResource(), status: fullStatus() }
    for (const field of all) expect(casesOf(field, base), field.path.join('.')).not.to.deep.equal([])
  })
})
