/** The definition says the same as the management API to each document of api/vectors/buffers.json, of the same field. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type BufferVector, bodyOf, bufferVectors, vectorsByField } from '../../support/buffer-vectors.ts'
import type { Json } from './fields.ts'
import type { Site } from './site.ts'
import { fieldsAtFault, resourceOf } from './vector-resource.ts'

const judge = { dryRun: 'All', fieldValidation: 'Strict' } as const

export function judgedAsByTheService(site: () => Site): void {
  describe('is judged as by the management API', () => {
    for (const [field, vectors] of vectorsByField()) {
      it(`${field}: ${vectors.length} documents`, async () => {
        const wrong: string[] = []
        for (const vector of vectors) {
          const { status, body } = await site().create(resourceOf(bodyOf(vector, 'somebody')).resource, judge)
          const expected = expectation(vector)
          const got = status === 201 ? 'taken' : `refused: ${fieldsAtFault(body)[0]}`
          if (got !== expected) wrong.push(`${vector.name} is ${got}, not ${expected}: ${told(body)}`)
        }
        expect(wrong).to.deep.equal([])
      })
    }
  })
}

/** The verdict and the field at fault: the first of which the answer speaks. */
function expectation({ verdict, field, because, set = {} }: BufferVector): string {
  if (because === undefined) return verdict === 'taken' ? verdict : `refused: ${field}`
  const refused = bufferVectors.reasons[because]!.resource === 'refused'
  return refused ? `refused: ${Object.keys(set).at(-1)}` : 'taken'
}

function told({ message }: Json): string {
  return String(message ?? '').slice(0, 400)
}
