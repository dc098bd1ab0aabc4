import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv, type AnySchema } from 'ajv'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { auditTargets } from '../../../internal/domain/audit.ts'
import { type ErrorEntry, type ErrorKey, errors } from '../../../internal/domain/errors.ts'
import { Components } from '../../../internal/http/openapi/components.ts'
import { documentedTable, openApiDocument } from '../../../internal/http/openapi/document.ts'
import { publicEndpoints } from '../../../internal/http/openapi/public-endpoints.ts'
import { tagOf } from '../../../internal/http/openapi/tags.ts'
import { errorsOf } from '../../../internal/http/routes/row-errors.ts'
import { responseSchemas } from '../../../internal/http/schemas/registry.ts'
import { judgedDocument } from '../../support/judged.ts'

const COPY = join(import.meta.dirname, '..', '..', '..', 'api', 'openapi.json')

interface Operation {
  operationId: string
  responses: Record<string, Response>
  requestBody?: { content: Record<string, Media> }
  parameters?: { name: string; in: string; description: string }[]
  callbacks?: Record<string, Record<string, Record<string, Operation>>>
}

interface Response {
  description: string
  content?: Record<string, Media>
}

interface Media {
  schema: object
  example?: unknown
  examples?: Record<string, { $ref: string }>
}

interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, AnySchema & object>; examples: Record<string, { value: unknown }> }
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
    for (const { row } of endpoints) {
      const { status, schema } = row.answers
      expect(schema === undefined, row.operationId).to.equal(status === 204)
      if (schema !== undefined) expect(responseSchemas, row.operationId).to.have.property(schema)
    }
    const used = namesBelow(document.paths, 'responses')
    const unused = Object.keys(responseSchemas).filter((name) => !used.has(name))
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
      ...['pausedReason', 'pausedAt', 'lastDeadLetterAt'].map((name) => `BufferStates.buffers[].${name}`),
      'DlqItem.lastResponse',
      'Error.code',
      'Error.message',
      'Buffer.groupKey.path',
      'Buffer.groupKey.fallbackHeader',
      'Buffer.delivery.headers',
      'Buffer.delivery.signing',
      ...['messageId', 'messageId.path', 'messageId.header', 'requireApiKey'].map((name) => `Buffer.${name}`),
      ...['scheme', 'signingSecret', 'previousSecret', 'toleranceSeconds'].map(
        (name) => `Buffer.sourceVerification.${name}`,
      ),
      'Buffer.pausedReason',
      'Buffer.pausedAt',
      'Plan.prices.BRL',
      'Plan.prices.USD',
      'CurrentSubscription.plan.prices.BRL',
      'CurrentSubscription.plan.prices.USD',
    ])
  })

  it('shows an example of every body, requests and answers, that fits', () => {
    const ajv = new Ajv({ strict: false, formats: { uri: true, 'date-time': true } })
    ajv.addSchema(judgedDocument() as AnySchema, 'openapi.json')
    for (const [operationId, pointer, media] of mediaOf(document.paths, '#/paths')) {
      const examples = examplesOf(media)
      expect(examples, `${operationId} ${pointer}`).not.to.deep.equal([])
      const fits = ajv.getSchema(`openapi.json${encodeURI(pointer)}/schema`)!
      for (const example of examples)
        expect(fits(example), `${operationId} ${pointer} ${ajv.errorsText(fits.errors)}`).to.equal(true)
    }
  })

  it('has no object without a name, and none that is in the way of later members of an answer', () => {
    for (const [name, schema] of Object.entries(document.components.schemas)) expectNamed(schema, name, true)
    for (const [operationId, pointer, { schema }] of mediaOf(document.paths, '#/paths'))
      expectNamed(schema, `${operationId} ${pointer}`, false)
    for (const [name, schema] of Object.entries(responseSchemas))
      expect(schema.title, 'the registry calls it otherwise').to.equal(name)
    const open = namesBelow(document.paths, 'responses')
    for (const name of open) {
      const { additionalProperties, properties } = document.components.schemas[name] as Shape
      if (properties !== undefined) expect(additionalProperties, `${name} is closed`).to.equal(undefined)
    }
  })

  it('has no request with members that it does not know', () => {
    for (const name of namesBelow(document.paths, 'requestBody')) {
      const { additionalProperties, properties } = document.components.schemas[name] as Shape
      if (properties !== undefined) expect(additionalProperties, `${name} is open`).to.equal(false)
    }
  })

  it('has members of a request that have a default as optional, and of the answer as required', () => {
    const { BatchInput, Batch, BufferInput, Buffer } = document.components.schemas as Record<string, Shape>
    expect(BatchInput!.required).to.equal(undefined)
    expect(Batch!.required).to.have.members(Object.keys(BatchInput!.properties!))
    expect(BufferInput!.required).to.have.members(['bufferId', 'projectId', 'name', 'groupKey', 'delivery'])
    expect(Buffer!.required).to.include.members(['enabled', 'batch', 'dlqPauseThreshold'])
    expect(JSON.stringify(document.components.schemas)).not.to.include('"default":')
    expect(BatchInput!.properties!.maxItems!.description).to.include('Default: 50.')
  })

  it('tells the request that a destination gets', () => {
    const { callbacks } = operationOf('createBuffer')
    const { post } = callbacks!.delivery!['{$request.body#/delivery/url}']!
    expect(post!.requestBody!.content['application/json']!.schema).to.deep.equal({
      $ref: '#/components/schemas/DeliveryBatch',
    })
    const names = post!.parameters!.map(({ name }) => name)
    expect(names).to.have.members(['x-idempotency-key', 'x-svc-signature', 'user-agent'])
    expect(Object.keys(post!.responses)).to.have.members(['2XX', '4XX', 'default'])
  })

  it('names the headers of a webhook, and tells those that a buffer names', () => {
    const headers = operationOf('ingest').parameters!.filter((each) => each.in === 'header')
    expect(headers.map(({ name }) => name)).to.have.members([
      'X-API-Key',
      'X-Idempotency-Key',
      'x-webhook-signature',
    ])
    expect(JSON.stringify(document.paths)).to.include('groupKey.fallbackHeader')
  })

  it('refuses an object without a name, and two of one name', () => {
    const components = new Components()
    expect(() => components.answer({ type: 'object', description: 'Odd.', properties: {} })).to.throw(
      '"Odd." needs a title',
    )
    components.answer({ title: 'Odd', type: 'object', description: 'One.', properties: {} })
    expect(() =>
      components.answer({ title: 'Odd', type: 'object', description: 'Two.', properties: {} }),
    ).to.throw('two schemas have the title Odd')
  })
})

interface Shape {
  type?: string
  description?: string
  properties?: Record<string, Shape>
  additionalProperties?: unknown
  required?: string[]
}

function operationOf(operationId: string): Operation {
  return operations.find((each) => each.operationId === operationId)!
}

/** Every body of the operations, those of callbacks included, with its place in the document. */
function mediaOf(value: unknown, pointer: string, operationId = ''): [string, string, Media][] {
  if (typeof value !== 'object' || value === null) return []
  const { operationId: own = operationId, content } = value as { operationId?: string; content?: object }
  const here = Object.entries(content ?? {}).map(([type, media]): [string, string, Media] => [
    own,
    `${pointer}/content/${type.replace('/', '~1')}`,
    media as Media,
  ])
  const below = Object.entries(value).filter(([name]) => name !== 'content')
  const others = below.flatMap(([name, member]) =>
    mediaOf(member, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, own),
  )
  return [...here, ...others]
}

function examplesOf({ example, examples = {} }: Media): unknown[] {
  const shared = Object.values(examples).map(
    ({ $ref }) => document.components.examples[$ref.split('/').at(-1)!]!.value,
  )
  return example === undefined ? shared : [example, ...shared]
}

/** Fails for an object in the place of a reference; `isNamed`: this one is a component. */
function expectNamed(schema: unknown, where: string, isNamed: boolean): void {
  if (typeof schema !== 'object' || schema === null) return
  if (!isNamed) expect((schema as Shape).type, `${where} has no name`).not.to.equal('object')
  const { properties = {}, ...rest } = schema as Shape & {
    items?: unknown
    anyOf?: unknown[]
    allOf?: unknown[]
  }
  for (const [name, member] of Object.entries(properties)) expectNamed(member, `${where}.${name}`, false)
  for (const member of [rest.items, rest.additionalProperties, ...(rest.anyOf ?? []), ...(rest.allOf ?? [])])
    expectNamed(member, `${where}[]`, false)
}

/** Components that stand in the `key` members of operations, and in what they refer to. */
function namesBelow(paths: Document['paths'], key: 'responses' | 'requestBody'): Set<string> {
  const found = new Set<string>()
  const visit = (value: unknown): void => {
    for (const [, name = ''] of JSON.stringify(value ?? {}).matchAll(/schemas\/(\w+)"/g)) {
      if (found.has(name)) continue
      found.add(name)
      visit(document.components.schemas[name])
    }
  }
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) visit(operation[key])
  return found
}

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
