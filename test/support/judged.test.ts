import { Ajv, type AnySchema } from 'ajv'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { openApiDocument } from '../../internal/http/openapi/document.ts'
import { answerExamples } from '../../internal/http/openapi/examples/answers.ts'
import { judgedDocument } from './judged.ts'

function fits(document: unknown, name: string, value: unknown): boolean {
  const ajv = new Ajv({ strict: false, formats: { uri: true, 'date-time': true } })
  ajv.addSchema(document as AnySchema, 'openapi.json')
  return ajv.validate(`openapi.json#/components/schemas/${name}`, value)
}

describe('the document that tests judge by', () => {
  it('knows no member more than the published one, at any depth', () => {
    const buffer = answerExamples.Buffer as { batch: object }
    const later = [
      { ...buffer, later: 1 },
      { ...buffer, batch: { ...buffer.batch, later: 1 } },
    ]
    expect(fits(judgedDocument(), 'Buffer', buffer)).to.equal(true)
    for (const body of later) {
      expect(fits(openApiDocument(), 'Buffer', body)).to.equal(true)
      expect(fits(judgedDocument(), 'Buffer', body)).to.equal(false)
    }
  })

  it('knows null only where the published one does', () => {
    const subscription = answerExamples.CurrentSubscription as object
    expect(fits(judgedDocument(), 'CurrentSubscription', { subscription: null, plan: null })).to.equal(true)
    expect(fits(judgedDocument(), 'CurrentSubscription', { ...subscription, plan: 1 })).to.equal(false)
    expect(fits(judgedDocument(), 'Project', null)).to.equal(false)
  })
})
