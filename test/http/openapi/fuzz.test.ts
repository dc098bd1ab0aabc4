import { expect } from 'chai'
import fc, { type Arbitrary } from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { openApiDocument } from '../../../internal/http/openapi/document.ts'
import { bufferBody, call } from '../caller.ts'
import { startService, type TestService } from '../service.ts'
import { brokenTexts, type FuzzSchema, fitting, mutated, type Resolve } from './arbitrary.ts'

/**
 * Requests made up from the OpenAPI document, good ones and bad ones: never a 500, and every answer as the
 * document has it (`test/support/answers.ts` looks at all of them). `FUZZ_SEED` repeats a run, `FUZZ_RUNS`
 * makes it longer.
 */
const RUNS = Number(process.env.FUZZ_RUNS ?? 500)
const SEED = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: FuzzSchema
}

interface Operation {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: { 'application/json': { schema: FuzzSchema } } }
}

interface GeneratedRequest {
  operationId: string
  method: string
  path: string
  /** Which of the caller's keys is sent. */
  key: string
  body?: string
}

const document = openApiDocument() as unknown as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, FuzzSchema> }
}
const resolve: Resolve = (ref) => document.components.schemas[ref.split('/').at(-1) ?? '']!

/** What there is, so that many requests get past the search for it. */
const ids: Readonly<Record<string, readonly string[]>> = {
  customerId: ['acme', 'rival'],
  projectId: ['shop', 'lab'],
  bufferId: ['orders', 'bills'],
  dlqId: ['d1'],
  keyId: ['k1'],
  packId: ['pack-1k'],
  planId: ['basic'],
  invoiceId: ['i1'],
}

function identifiers(name: string): Arbitrary<string> {
  const known = ids[name] ?? ['x']
  return fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...known) },
    fc.stringMatching(/^[A-Za-z0-9._-]{1,20}$/),
    fc
      .string({ minLength: 1, maxLength: 20, unit: 'binary' })
      .map((text) => encodeURIComponent(text.toWellFormed())),
    fc.constantFrom('%00', '%2e%2e%2f', '%zz', '%c0%80', 'x'.repeat(5_000)),
  )
}

function queryText({ name, schema }: Parameter): Arbitrary<string> {
  const good = ids[name] ? fc.constantFrom(...ids[name]) : fitting(schema, resolve).map(String)
  const bad = fc.oneof(
    fc.constantFrom('', '0', '-1', 'NaN', '1e9', '\u0000', 'x'),
    fc.string({ maxLength: 8 }),
  )
  return fc.oneof({ weight: 4, arbitrary: good }, bad).map((text) => text.toWellFormed())
}

function generatedRequests(path: string, method: string, operation: Operation): Arbitrary<GeneratedRequest> {
  const { operationId, parameters = [], requestBody } = operation
  const inPath = parameters.filter((each) => each.in === 'path')
  const inQuery = parameters.filter((each) => each.in === 'query')
  const schema = requestBody?.content['application/json'].schema
  const good = schema === undefined ? fc.constant(undefined) : fitting(schema, resolve)
  return fc
    .record({
      path: fc.record(Object.fromEntries(inPath.map(({ name }) => [name, identifiers(name)]))),
      query: fc.record(Object.fromEntries(inQuery.map((each) => [each.name, queryText(each)])), {
        requiredKeys: [],
      }),
      twice: fc.boolean(),
      key: fc.oneof(
        { weight: 8, arbitrary: fc.constant('owner') },
        fc.constantFrom('viewer', 'none', 'bad', 'odd'),
      ),
      body: bodies(good, schema !== undefined),
    })
    .map((made) => ({
      operationId,
      method: method.toUpperCase(),
      path:
        path.replaceAll(/\{(\w+)\}/g, (_, name: string) => made.path[name]!) +
        queryOf(made.query, made.twice),
      key: made.key,
      ...(made.body !== undefined && { body: made.body }),
    }))
}

function bodies(good: Arbitrary<unknown>, hasBody: boolean): Arbitrary<string | undefined> {
  if (!hasBody) return fc.constant(undefined)
  return fc.oneof(
    { weight: 4, arbitrary: good.map(textOf) },
    { weight: 4, arbitrary: mutated(good).map(textOf) },
    brokenTexts,
  )
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? ''
}

/** Sometimes the first parameter is there twice. */
function queryOf(query: Record<string, string | undefined>, twice: boolean): string {
  const pairs = Object.entries(query).map(([name, text]) => [name, text ?? ''])
  const all = new URLSearchParams(twice && pairs.length > 2 ? [...pairs, pairs[0]!] : pairs)
  return pairs.length === 0 ? '' : `?${all.toString()}`
}

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => generatedRequests(path, method, operation)),
)

describe('requests made up from the OpenAPI document', () => {
  let service: TestService
  let keys: Record<string, string | undefined>

  before(async () => {
    service = await startService()
    const owner = await service.ownerKey('acme')
    await service.ownerKey('rival')
    const ask = (path: string, body: unknown) =>
      call(service.url + path, {
        method: 'POST',
        headers: { 'x-api-key': owner },
        body: JSON.stringify(body),
      })
    for (const projectId of ids.projectId!) await ask('/v1/admin/projects', { projectId, name: projectId })
    for (const bufferId of ids.bufferId!)
      await ask(
        '/v1/admin/buffers',
        bufferBody(bufferId, 'shop', { groupKey: { mode: 'header', fallbackHeader: 'user-agent' } }),
      )
    const viewer = await ask('/v1/admin/api-keys', { name: 'v', role: 'viewer' })
    keys = {
      owner,
      viewer: (viewer.json as { secret: string }).secret,
      none: undefined,
      bad: `svk_${'0'.repeat(48)}`,
      odd: 'ø',
    }
  })
  after(() => service.stop())

  it(`are never answered with 500, and always as it says (${RUNS} runs, FUZZ_SEED=${SEED})`, async function () {
    this.timeout(20_000 + RUNS * 100)
    const seen = new Map<string, Set<number>>()
    await fc.assert(
      fc.asyncProperty(fc.oneof(...operations), async ({ operationId, method, path, key: named, body }) => {
        const key = keys[named]
        const { status, text } = await call(service.url + path, {
          method,
          headers: { 'content-type': 'application/json', ...(key !== undefined && { 'x-api-key': key }) },
          ...(body !== undefined && { body }),
        })
        expect(status, text).not.to.equal(500)
        seen.set(operationId, (seen.get(operationId) ?? new Set()).add(status))
      }),
      { numRuns: RUNS, seed: SEED },
    )
    expect(service.told.failed).to.deep.equal([])
    // Bodies that are never good, or never bad, would show nothing.
    const statuses = new Set([...seen.values()].flatMap((each) => [...each]))
    if (RUNS >= 500) expect([...statuses]).to.include.members([200, 400, 401, 403, 404])
  })
})
