import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { bufferBody, call } from './caller.ts'
import { created, ingestHarnessOfSuite } from './ingest-harness.ts'

describe('webhooks that are refused', () => {
  const harness = ingestHarnessOfSuite()

  describe('bodies that are no JSON', () => {
    const cases: Record<string, string | Uint8Array<ArrayBuffer>> = {
      empty: '',
      blank: '   ',
      'half an object': '{"customer":',
      'trailing text': '{"customer":"c"} x',
      NaN: '{"customer":NaN}',
      'a byte order mark': '\ufeff{"customer":"c"}',
      'invalid UTF-8': new Uint8Array([...Buffer.from('{"customer":"'), 0xff, ...Buffer.from('"}')]),
      'a surrogate in UTF-8': new Uint8Array([...Buffer.from('{"customer":"'), 0xed, 0xa0, 0x80, 0x22, 0x7d]),
      'UTF-16': new Uint8Array(Buffer.from('{"customer":"c"}', 'utf16le')),
      'form data': 'customer=c',
    }
    for (const [what, body] of Object.entries(cases)) {
      it(`answers ${what} with the HTML page`, () => harness.refusesAsHtml(harness.ingest(body)))
    }

    it('answers depth 65 and 500,000 in JSON', async () => {
      const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
      await harness.refuses(harness.ingest(`{"customer":"c","d":${deep(64)}}`), 400, /nested/)
      await harness.refuses(harness.ingest(deep(499_000)), 400, /nested/)
    })
  })

  describe('addresses', () => {
    it('answers 404 for what cannot name a buffer', async () => {
      const long = 'a'.repeat(10_240)
      const bad = [
        'none',
        'a.b',
        'a*',
        'a>',
        '%2e%2e',
        'orders%2f',
        'a%2fb',
        'a%20b',
        'a%00b',
        'a%0ab',
        '%zz',
      ]
      for (const id of [...bad, 'о%72ders', '%EF%BD%8Frders', 'ORDERS', long, "'%3b--"]) {
        const answer = await harness.ingest('{"customer":"c"}', {}, `shop/${id}`)
        expect(answer.status, id).to.equal(404)
        expect(answer.json, id).to.deep.equal({ error: 'Buffer not found' })
      }
      for (const path of [
        `${long}/orders`,
        `${long}/${long}`,
        'a%2fb/orders',
        'shop',
        'shop/orders/',
        'shop//orders',
      ]) {
        expect((await harness.ingest('{"customer":"c"}', {}, path)).status, path.slice(0, 40)).to.equal(404)
      }
      await harness.changesNothing()
    })

    it('answers 400 for another project', () =>
      harness.refuses(
        harness.ingest('{"customer":"c"}', {}, 'other/orders'),
        400,
        'Buffer does not belong to this project',
      ))

    it('answers other methods with 405, OPTIONS with what is allowed', async () => {
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'HEAD']) {
        const answer = await call(`${harness.service.url}/v1/ingest/shop/orders`, { method })
        expect(answer.status, method).to.equal(405)
        expect(answer.headers.get('allow')).to.equal('POST, OPTIONS')
      }
      const options = await call(`${harness.service.url}/v1/ingest/shop/orders`, { method: 'OPTIONS' })
      expect([options.status, options.headers.get('allow')]).to.deep.equal([204, 'POST, OPTIONS'])
      expect((await call(`${harness.service.url}/v1/ingest/shop`)).status).to.equal(404)
    })
  })

  describe('API keys', () => {
    const body = '{"customer":"c"}'

    it('takes keys of the account and of the project', async () => {
      expect((await harness.ingest(body, { 'x-api-key': harness.ownerKey })).status).to.equal(202)
      const scoped = await harness.admin.post('/v1/admin/api-keys', {
        name: 's',
        role: 'viewer',
        projectIds: ['shop'],
      })
      const { secret } = scoped.json as { secret: string }
      expect((await harness.ingest(body, { 'x-api-key': secret })).status).to.equal(202)
    })

    it('answers 401 for what is no key', async () => {
      const bad = [
        'svk_',
        `svk_${'a'.repeat(48)}`,
        harness.ownerKey.slice(0, -1),
        `${harness.ownerKey}0`,
        harness.ownerKey.toUpperCase(),
        `svk_${harness.ownerKey.slice(4).toUpperCase()}`,
        `${harness.ownerKey}, ${harness.ownerKey}`,
        'x'.repeat(8000),
      ]
      for (const key of bad) {
        const answer = await harness.ingest(body, { 'x-api-key': key })
        expect([answer.status, answer.json], key.slice(0, 60)).to.deep.equal([401, { error: 'Unauthorized' }])
      }
      await harness.refuses(harness.ingest(body, { 'x-api-key': '' }), 401, 'Unauthorized')
    })

    it('judges the key alone when an ID token stands beside it', () =>
      harness.refuses(
        harness.ingest(body, { 'x-api-key': 'svk_no', authorization: `Bearer ${harness.ownerKey}` }),
        401,
        'Unauthorized',
      ))

    it('answers 401 for a revoked key at once', async () => {
      const { json } = await harness.admin.post('/v1/admin/api-keys', { name: 'gone' })
      const { keyId, secret } = json as { keyId: string; secret: string }
      expect((await harness.ingest(body, { 'x-api-key': secret })).status).to.equal(202)
      expect((await harness.admin.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
      await harness.startOver()
      await harness.refuses(harness.ingest(body, { 'x-api-key': secret }), 401, 'Unauthorized')
    })

    it('answers 403 for another account and another project', async () => {
      const denied = 'API key does not have access to this buffer'
      const foreign = await harness.service.ownerKey('rival')
      await harness.refuses(harness.ingest(body, { 'x-api-key': foreign }), 403, denied)
      const scoped = await harness.admin.post('/v1/admin/api-keys', { name: 'o', projectIds: ['other'] })
      const { secret } = scoped.json as { secret: string }
      await harness.refuses(harness.ingest(body, { 'x-api-key': secret }), 403, denied)
    })
  })

  describe('source verification', () => {
    const body = '{"customer": "c"}'
    const signature = createHmac('sha256', 's3cret').update(body).digest('hex')

    it('takes the signature of the raw bytes', async () => {
      expect((await harness.ingest(body, { 'x-sig': signature }, 'shop/signed')).status).to.equal(202)
    })

    it('answers 401 without one', async () => {
      await harness.refuses(harness.ingest(body, {}, 'shop/signed'), 401, 'Missing signature header')
      await harness.refuses(
        harness.ingest(body, { 'x-sig': '' }, 'shop/signed'),
        401,
        'Missing signature header',
      )
    })

    it('answers 401 for a wrong one', async () => {
      const wrong = [
        signature.toUpperCase(),
        signature.slice(1),
        `sha256=${signature}`,
        createHmac('sha1', 's3cret').update(body).digest('hex'),
        createHmac('sha256', 's3cret').update('{"customer":"c"}').digest('hex'),
      ]
      for (const header of wrong) {
        const answer = await harness.ingest(body, { 'x-sig': header }, 'shop/signed')
        expect([answer.status, answer.json]).to.deep.equal([401, { error: 'Invalid signature' }])
      }
      await harness.changesNothing()
    })

    it('judges the signature before the JSON', () =>
      harness.refuses(harness.ingest('{', { 'x-sig': signature }, 'shop/signed'), 401, 'Invalid signature'))
  })

  describe('state of the buffer', () => {
    it('refuses while disabled, and takes again when enabled', async () => {
      await created(harness.admin.post('/v1/admin/buffers', bufferBody('paused', 'shop', { enabled: false })))
      const body = '{"customer":"c"}'
      await harness.refuses(harness.ingest(body, {}, 'shop/paused'), 400, 'Buffer is disabled')
      expect((await harness.admin.patch('/v1/admin/buffers/paused', { enabled: true })).status).to.equal(200)
      expect((await harness.ingest(body, {}, 'shop/paused')).status).to.equal(202)
    })

    it('judges the key before it', async () => {
      await created(
        harness.admin.post('/v1/admin/buffers', bufferBody('paused-2', 'shop', { enabled: false })),
      )
      await harness.refuses(
        harness.ingest('{', { 'x-api-key': 'svk_x' }, 'shop/paused-2'),
        401,
        'Unauthorized',
      )
    })

    for (const [holder, name] of [
      ['buffer', 'Buffer'],
      ['customer', 'Account'],
    ] as const) {
      it(`answers 503 and charges nothing while its ${holder} holds the whole share of the shard`, async () => {
        const { inbox, told } = harness.service
        inbox.fullFor.set('c', holder)
        told.overShare.length = 0
        const answer = await harness.ingest('{"customer":"c"}')
        expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '5'])
        const error = `${name} holds its full share of storage, try again later`
        expect(answer.json).to.deep.equal({ error })
        expect(told.overShare).to.deep.equal([holder])
        await harness.changesNothing()
        inbox.fullFor.clear()
        expect((await harness.ingest('{"customer":"c"}')).status).to.equal(202)
      })
    }

    it('answers 404 once deleted', async () => {
      await created(harness.admin.post('/v1/admin/buffers', bufferBody('gone', 'shop')))
      expect((await harness.ingest('{"customer":"c"}', {}, 'shop/gone')).status).to.equal(202)
      expect((await harness.admin.delete('/v1/admin/buffers/gone')).status).to.equal(204)
      await harness.startOver()
      await harness.refuses(harness.ingest('{"customer":"c"}', {}, 'shop/gone'), 404, 'Buffer not found')
    })
  })
})
