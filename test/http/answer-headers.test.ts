import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { adminOf, bufferBody } from './caller.ts'
import { RawClient } from './raw-client.ts'
import { startService, type TestService } from './service.ts'

/** What browsers and caches may do with an answer, whatever part of the service gave it. */
describe('every answer forbids to keep it, and to guess its type', () => {
  let service: TestService
  let key: string

  before(async () => {
    service = await startService({ maxBodyBytes: 1_000 })
    key = await service.ownerKey('acme')
    const admin = adminOf(service.url, key)
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    expect((await admin.post('/v1/admin/buffers', bufferBody('orders', 'shop'))).status).to.equal(201)
  })

  after(() => service.stop())

  const post = (path: string, body: string, ...headers: string[]) =>
    [`POST ${path} HTTP/1.1`, 'Host: x', `Content-Length: ${body.length}`, ...headers, '', body].join('\r\n')
  const get = (path: string, ...headers: string[]) =>
    [`GET ${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n')
  const INGEST = '/v1/ingest/shop/orders'

  for (const [what, status, request] of [
    ['an accepted webhook', 202, () => post(INGEST, '{"customer":"c"}')],
    ['a webhook that is no JSON', 400, () => post(INGEST, '{')],
    ['a webhook for nobody', 404, () => post('/v1/ingest/shop/none', '{}')],
    ['a webhook that is too large', 413, () => post(INGEST, 'x'.repeat(1_001))],
    ['a webhook by another method', 405, () => get(INGEST)],
    ['a list of the management API', 200, () => get('/v1/admin/api-keys', `X-API-Key: ${key}`)],
    ['a missing credential', 401, () => get('/v1/admin/api-keys')],
    ['a path that is not there', 404, () => get('/none')],
    ['the health check', 200, () => get('/health')],
    ['an expectation that is not met', 417, () => post(INGEST, '', 'Expect: a-miracle')],
    ['what is no HTTP', 400, () => '\x16\x03\x01 hello\r\n\r\n'],
  ] as const) {
    it(`${status} of ${what}`, async () => {
      const client = await RawClient.open(service.port)
      client.send(Buffer.from(request()))
      const { headers, ...answer } = await client.answer()
      client.close()
      expect(answer.status, answer.body).to.equal(status)
      expect(headers.get('cache-control')).to.equal('no-store')
      expect(headers.get('x-content-type-options')).to.equal('nosniff')
      // The prompt of a shell does not stand behind it.
      expect(answer.body.endsWith('\n')).to.equal(true)
    })
  }

  it('but the documents, which may be kept for five minutes', async () => {
    const { headers } = await fetch(`${service.url}/openapi.json`)
    expect(headers.get('cache-control')).to.equal('public, max-age=300')
    expect(headers.get('x-content-type-options')).to.equal('nosniff')
  })
})

/** The id under which answers and logs name a request: its own, or one that the service makes. */
describe('every answer to a webhook names its request', () => {
  let service: TestService

  before(async () => {
    service = await startService({ maxBodyBytes: 1_000 })
    const admin = adminOf(service.url, await service.ownerKey('acme'))
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    expect((await admin.post('/v1/admin/buffers', bufferBody('orders', 'shop'))).status).to.equal(201)
  })

  after(() => service.stop())

  const path = '/v1/ingest/shop/orders'
  for (const [what, status, where, lines, body] of [
    ['that is accepted', 202, path, ['Content-Length: 16'], '{"customer":"c"}'],
    ['that is no JSON', 400, path, ['Content-Length: 1'], '{'],
    ['for nobody', 404, '/v1/ingest/shop/none', ['Content-Length: 2'], '{}'],
    ['to a path that cannot be', 404, '/v1/ingest/shop', ['Content-Length: 2'], '{}'],
    ['that says it is too large', 413, path, ['Content-Length: 1001'], 'x'],
    [
      'that is too large in chunks',
      413,
      path,
      ['Transfer-Encoding: chunked'],
      `3e9\r\n${'x'.repeat(1_001)}\r\n`,
    ],
    ['that is encoded', 415, path, ['Content-Encoding: gzip', 'Content-Length: 1'], 'x'],
  ] as const) {
    it(`${what}: ${status}`, async () => {
      const ask = async (...more: string[]) => {
        const client = await RawClient.open(service.port)
        client.send(
          Buffer.from([`POST ${where} HTTP/1.1`, 'Host: x', ...lines, ...more, '', body].join('\r\n')),
        )
        const answer = await client.answer().finally(() => client.close())
        expect(answer.status, answer.body).to.equal(status)
        return answer.headers.get('x-request-id')
      }
      expect(await ask('X-Request-Id: order.7-a_b')).to.equal('order.7-a_b')
      const made = [
        await ask(),
        await ask('X-Request-Id: a b'),
        await ask(`X-Request-Id: ${'x'.repeat(129)}`),
      ]
      for (const id of made) expect(id).to.match(/^[0-9a-f-]{36}$/)
      expect(new Set(made).size).to.equal(3)
    })
  }
})
