import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv, type AnySchema } from 'ajv'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { auditTargets } from '../../../internal/domain/audit.ts'
import { type ErrorEntry, type ErrorKey, errors } from '../../../internal/domain/errors.ts'
import { documentedTable, openApiDocument } from '../../../internal/http/openapi/document.ts'
import { publicEndpoints } from '../../../internal/http/openapi/public-endpoints.ts'
import { tagOf } from '../../../internal/http/openapi/tags.ts'
import { errorsOf } from '../../../internal/http/routes/row-errors.ts'
import { responseSchemas } from '../../../internal/http/schemas/registry.ts'

const COPY = join(import.meta.dirname, '..', '..', '..', 'api', 'openapi.json')

interface Operation {
  operationId: string
  responses: Record<string, { description: string; content?: Record<string, { schema: unknown }> }>
  requestBody?: { content: Record<string, { schema: { $ref: string }; example?: unknown }> }
}

interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, AnySchema>; examples: Record<string, { value: unknown }> }
}

const document = openApiDocument() as unknown as Document
const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
const rows = documentedTable()
/** Every endpoint with the keys of what it refuses with. */
const endpoints = [
  ...publicEndpoints.map((row) => ({ row, keys: row.errors })),
  ...rows.map((row) => ({ row, keys: errorsOf(row) })),
]

describe('the OpenAPI document', () => {
  it('is the one that is checked in', () => {
    const current = `${JSON.stringify(openApiDocument(), null, 2)}\n`
    expect(readFileSync(COPY, 'utf8') === current, 'stale: run `node cmd/openapi/main.ts`').to.equal(true)
  })

  it('is OpenAPI 3.0.3 of version 1.0.0', () => {
    expect(openApiDocument())
      .to.include({ openapi: '3.0.3' })
      .and.to.nested.include({ 'info.version': '1.0.0' })
  })

  it('carries /v1 in every path but those of the health check and the entry', () => {
    const others = Object.keys(document.paths).filter((path) => !path.startsWith('/v1/'))
    expect(others).to.deep.equal(['/health', '/'])
  })

  it('passes the strict rules of the linter', async () => {
    const config = await createConfig({
      extends: ['recommended-strict'],
      rules: {
        // There is no page that states the terms of a program that is not published.
        'info-license-strict': 'off',
      },
    })
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: COPY, config })
    const told = problems.map(({ ruleId, location }) => `${ruleId} ${location[0]?.pointer}`)
    // They take no input that could be wrong.
    const allowed = ['~1health', '~1'].map((path) => `operation-4xx-response #/paths/${path}/get/responses`)
    expect(told).to.have.members(allowed)
  })

  it('has every endpoint once, each under a name of its own', () => {
    const documented = operations.map(({ operationId }) => operationId)
    expect(documented).to.have.members(endpoints.map(({ row }) => row.operationId))
    expect(new Set(documented).size).to.equal(endpoints.length)
  })

  it('refuses a resource without a tag', () => {
    expect(() => tagOf('/v1/admin/gadgets/{gadgetId}')).to.throw('/v1/admin/gadgets/{gadgetId}')
  })

  it('names a schema of the registry for every body, and uses every schema of it', () => {
    const text = JSON.stringify(document.paths)
    for (const { row } of endpoints) {
      const { status, schema } = row.answers
      expect(schema === undefined, row.operationId).to.equal(status === 204)
      if (schema !== undefined) expect(responseSchemas, row.operationId).to.have.property(schema)
    }
    const unused = Object.keys(responseSchemas).filter((name) => !text.includes(`schemas/${name}"`))
    expect(unused).to.deep.equal([])
  })

  it('has closed response schemas whose members are described and, but for a few, always there', () => {
    const optional: string[] = []
    for (const [name, schema] of Object.entries(responseSchemas)) inspect(schema, name, optional)
    expect(optional).to.have.members([
      'Accepted.duplicate',
      'Customer.suspendedAt',
      'ApiKey.projectIds',
      ...['keyId', 'issuer', 'subject'].map((name) => `AuditPage.records[].actor.${name}`),
      ...auditTargets.map((name) => `AuditPage.records[].target.${name}`),
      ...['address', 'forwardedFor'].map((name) => `AuditPage.records[].from.${name}`),
      'CreatedApiKey.projectIds',
      'DlqItem.lastResponse',
      'Error.code',
      'Error.message',
      'Buffer.groupKey.path',
      'Buffer.groupKey.fallbackHeader',
      'Buffer.delivery.headers',
      'Buffer.delivery.signing',
      'Buffer.sourceVerification.signingSecret',
      'Buffer.pausedReason',
      'Buffer.pausedAt',
      'Plan.prices.BRL',
      'Plan.prices.USD',
      'CurrentSubscription.plan.prices.BRL',
      'CurrentSubscription.plan.prices.USD',
    ])
  })

  it('shows examples that fit', () => {
    const ajv = new Ajv({ strict: false, formats: { uri: true, 'date-time': true } })
    const shown = operations.flatMap(({ operationId, requestBody }) => {
      const media = requestBody?.content['application/json']
      return media?.example === undefined ? [] : [{ operationId, ...media }]
    })
    expect(shown).not.to.deep.equal([])
    for (const { operationId, example, schema } of shown) {
      const name = schema.$ref.split('/').at(-1) ?? ''
      expect(ajv.validate(document.components.schemas[name]!, example), operationId).to.equal(true)
    }
    for (const [key, { value }] of Object.entries(document.components.examples)) {
      expect(ajv.validate(responseSchemas.Error, value), key).to.equal(true)
    }
  })
})

/** Collects the members that may be missing; fails for an open object or a member without a description. */
function inspect(schema: unknown, path: string, optional: string[]): void {
  const { type, properties, required, additionalProperties, items, description } = schema as {
    type?: string
    properties?: Record<string, unknown>
    required?: string[]
    additionalProperties?: unknown
    items?: unknown
    description?: string
  }
  expect(description, `${path} is not described`).to.be.a('string')
  if (type === 'array') inspect(items, `${path}[]`, optional)
  if (type !== 'object') return
  expect(additionalProperties, `${path} is open`).not.to.equal(undefined)
  expect(additionalProperties, `${path} is open`).not.to.equal(true)
  for (const [name, member] of Object.entries(properties ?? {})) {
    if (!required?.includes(name)) optional.push(`${path}.${name}`)
    inspect(member, `${path}.${name}`, optional)
  }
}

describe('the error registry and the document', () => {
  const entries = Object.entries(errors) as [ErrorKey, ErrorEntry][]

  it('every error is answered by an endpoint', () => {
    const answered = new Set(endpoints.flatMap(({ keys }) => keys))
    expect(entries.map(([key]) => key).filter((key) => !answered.has(key))).to.deep.equal([])
  })

  it('every status of an error is documented with its code, and every documented one has an error', () => {
    for (const { row, keys } of endpoints) {
      const { responses } = document.paths[row.path]![row.method.toLowerCase()]!
      const successes = [row.answers, ...('otherAnswers' in row ? (row.otherAnswers ?? []) : [])]
      const expected = [...successes.map(({ status }) => status), ...keys.map((key) => errors[key].status)]
      expect(Object.keys(responses), row.operationId).to.have.members([...new Set(expected)].map(String))
      for (const key of keys) {
        const { status, code = '' }: ErrorEntry = errors[key]
        expect(responses[status]!.description, `${row.operationId} ${key}`).to.include(code)
      }
    }
  })

  it('an endpoint lists no error twice or that its row implies', () => {
    for (const row of rows) {
      const implied = errorsOf({ ...row, errors: [] })
      expect(row.errors.filter((key) => implied.includes(key))).to.deep.equal([], row.operationId)
      expect(new Set(row.errors).size).to.equal(row.errors.length, row.operationId)
    }
  })
})
