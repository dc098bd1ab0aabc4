import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { documentedTable } from '../../internal/http/openapi/document.ts'
import { querySchemas } from '../../internal/http/routes/request-shape.ts'
import type { Route } from '../../internal/http/routes/route.ts'
import { eventually } from '../support/eventually.ts'
import { adminHarnessOfSuite, refuses } from './admin-harness.ts'
import { type Answer, adminOf, bufferBody, call } from './caller.ts'
import { RawClient } from './raw-client.ts'
import { startService, type TestService } from './service.ts'

/** Bad input to every endpoint of the route table: its documented error, no change, and the next request works. */
describe('bad input', () => {
  const harness = adminHarnessOfSuite()
  const table = documentedTable()

  /** Names that exist, so that nothing but the bad part is refused. */
  const ids: Readonly<Record<string, string>> = {
    projectId: 'shop',
    bufferId: 'orders',
    customerId: 'acme',
    planId: 'basic',
  }

  function pathOf(row: Route, query: readonly (readonly [string, string])[] = []): string {
    const path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'x')
    const own = row.customerId ? [['customerId', 'acme'] as const] : []
    const needed = (row.queryRequired ?? []).map((name) => [name, ids[name] ?? 'x'] as const)
    return `${path}?${new URLSearchParams([...own, ...needed, ...query].map((pair) => [...pair]))}`
  }

  function ask(row: Route, path: string, body?: string): Promise<Answer> {
    return call(harness.service.url + path, {
      method: row.method,
      headers: { 'x-api-key': harness.ownerKey },
      ...(body !== undefined && { body }),
    })
  }

  async function everything(): Promise<string> {
    const { db } = harness.service
    const tables = ['customers', 'projects', 'buffers', 'api_keys', 'dlq_items', 'subscriptions']
    const parts = tables.map(
      (
        name,
      ) => db`SELECT coalesce(jsonb_agg(to_jsonb(t) - 'last_used_at' ORDER BY to_jsonb(t)::text), '[]') AS all
        FROM ${db(name)} AS t`,
    )
    return JSON.stringify(await Promise.all(parts))
  }

  let before_ = ''
  before(async () => {
    before_ = await everything()
  })
  afterEach(async () => {
    expect(await everything(), 'something changed').to.equal(before_)
    expect((await harness.owner.get('/v1/admin/credits')).status).to.equal(200)
  })

  for (const row of table.filter(({ body }) => body !== undefined)) {
    describe(`in the body of ${row.operationId}`, () => {
      const post = (body: string) => ask(row, pathOf(row), body)

      it('that is no JSON object', async () => {
        const texts = [
          '{',
          'null',
          '[]',
          '1',
          '"x"',
          '\ufeff{}',
          '{"a":1,}',
          '{} {}',
          ...(row.bodyOptional ? [] : ['']),
        ]
        for (const text of texts) {
          await refuses(post(text), 400, /^Request body (is not valid JSON|must be a JSON object)$/)
        }
      })

      it('that is nested too deep', async () => {
        for (const depth of [65, 400_000]) {
          const text = `{"x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
          await refuses(post(text), 400, /^Request body is nested more than 64 levels deep$/)
        }
      })

      it('that is too large or encoded', async () => {
        await refuses(post(`{"x":"${'x'.repeat(1_000_000)}"}`), 413, /^Request body is too large$/)
        const gzip = call(harness.service.url + pathOf(row), {
          method: row.method,
          headers: { 'x-api-key': harness.ownerKey, 'content-encoding': 'gzip' },
          body: '{}',
        })
        await refuses(gzip, 415)
      })

      it('with unknown and prototype names', async () => {
        for (const name of ['colour', '__proto__', 'constructor', 'toString', 'hasOwnProperty', '']) {
          const text = `{"${name}":{"polluted":true}}`
          const { status, json } = await post(text)
          // What does not exist is told before a body that the use case judges.
          if (status === 404) continue
          expect(status).to.equal(400)
          expect((json as { error: string }).error.split('; ')).to.include(
            `${name || '""'} is not a known field`,
          )
        }
        expect(({} as { polluted?: boolean }).polluted).to.equal(undefined)
      })
    })
  }

  for (const row of table) {
    const names = Object.keys(querySchemas(row))
    it(`in the query of ${row.operationId}: an unknown one, and a known one given twice`, async () => {
      for (const name of ['unknown', '__proto__', 'CustomerId', 'limit ']) {
        const path = pathOf(row, [[name, '1']])
        await refuses(
          ask(row, path, row.body && '{}'),
          400,
          new RegExp(`Query parameter ${name} is not known`),
        )
      }
      for (const name of names) {
        const twice = [name, name].map((each) => [each, ids[each] ?? '1'] as const)
        const path = pathOf({ ...row, customerId: undefined, queryRequired: [] } as unknown as Route, twice)
        const { status, json } = await ask(row, path, row.body && '{}')
        expect(status).to.equal(400)
        expect((json as { error: string }).error).to.include(`Query parameter ${name} must be given once`)
      }
    })

    for (const name of names) {
      it(`in the query of ${row.operationId}: an empty ${name}`, async () => {
        const rest = { ...row, ...(name === 'customerId' && { customerId: undefined }) } as unknown as Route
        const others = (row.queryRequired ?? []).filter((other) => other !== name)
        const path = pathOf({ ...rest, queryRequired: others } as Route, [[name, '']])
        await refuses(ask(row, path, row.body && '{}'), 400, new RegExp(`^${name} `))
      })
    }
  }

  it('in the configuration: every problem of a creation and a PATCH at once', async () => {
    const config = { batch: { maxItems: 0, sizes: 1 }, dlqPauseThreshold: 11, delivery: { url: 7 } }
    const problems = [
      'batch.sizes is not a known field',
      'batch.maxItems must be an integer from 1 to 10000',
      'delivery.url must be a string',
      'dlqPauseThreshold must be an integer from 1 to 10',
    ]
    const creation = await harness.owner.post('/v1/admin/buffers', bufferBody('b', 'shop', config))
    const patch = await harness.owner.patch('/v1/admin/buffers/orders', { ...config, bufferId: 'b' })
    expect([creation.status, patch.status]).to.deep.equal([400, 400])
    const told = ({ json }: Answer) => (json as { error: string }).error.split('; ')
    expect(told(creation)).to.have.members(problems)
    expect(told(patch)).to.have.members([...problems, 'bufferId cannot be changed'])
  })

  it('in the key: 47 and 49 characters, upper-case, blanks, two of them', async () => {
    const hex = harness.ownerKey.slice(4)
    const bad = [
      ...[hex.slice(1), `${hex}0`, hex.toUpperCase(), `${hex.slice(1)}g`].map((digits) => `svk_${digits}`),
      ...[
        `SVK_${hex}`,
        hex,
        `sv_${hex}`,
        `${harness.ownerKey}, ${harness.ownerKey}`,
        'x'.repeat(10_000),
        '\u00ff',
      ],
    ]
    for (const row of table) {
      // Hexadecimal digits without a letter would be their own upper case.
      for (const key of bad.filter((each) => each !== harness.ownerKey)) {
        const answer = await adminOf(harness.service.url, key).get('/v1/admin/credits')
        expect([answer.status, answer.json]).to.deep.equal([401, { error: 'Invalid or revoked API key' }])
      }
      const first = bad[0]!
      const { status } = await call(harness.service.url + pathOf(row), {
        method: row.method,
        headers: { 'x-api-key': first },
        ...(row.body && { body: '{}' }),
      })
      expect(status, row.operationId).to.equal(401)
    }
  })
})

describe('a key that is revoked while its request is on its way', () => {
  const harness = adminHarnessOfSuite()

  it('is refused, and the request changes nothing', async () => {
    const made = await harness.owner.post('/v1/admin/api-keys', { name: 'short' })
    const { keyId, secret } = made.json as { keyId: string; secret: string }
    const body = JSON.stringify({ projectId: 'late', name: 'Late' })
    const client = await RawClient.open(harness.service.port)
    client.send(
      `POST /v1/admin/projects HTTP/1.1\r\nHost: x\r\nX-API-Key: ${secret}\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    const answering = client.answer()
    // The body is invited once the head was judged.
    await eventually(() => client.interim === 1)
    expect((await harness.owner.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
    client.send(body)
    const answer = await answering
    client.close()
    expect([answer.status, JSON.parse(answer.body)]).to.deep.equal([
      401,
      { error: 'Invalid or revoked API key' },
    ])
    await refuses(harness.owner.get('/v1/admin/projects/late'), 404)
  })
})

describe('an installation that is not local', () => {
  let service: TestService

  before(async () => {
    service = await startService({ local: false })
  })
  after(() => service.stop())

  it('has no grant of credits: 404', async () => {
    const owner = adminOf(service.url, await service.ownerKey('acme'))
    const before = (await owner.get('/v1/admin/credits')).json
    const { status, json } = await owner.post('/v1/admin/credits/add', { amount: 5 })
    expect([status, json]).to.deep.equal([404, { error: 'Not found' }])
    expect((await owner.get('/v1/admin/credits')).json).to.deep.equal(before)
  })
})
