import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { type Admin, type Answer, adminOf, bufferBody, call } from './caller.ts'
import { startService, type TestService } from './service.ts'

describe('POST /v1/ingest/{projectId}/{bufferId}', () => {
  let service: TestService
  let admin: Admin
  let ownerKey: string
  let credits: number

  before(async () => {
    service = await startService()
    ownerKey = await service.ownerKey('acme')
    admin = adminOf(service.url, ownerKey)
    for (const projectId of ['shop', 'other']) {
      await created(admin.post('/v1/admin/projects', { projectId, name: projectId }))
    }
    await created(admin.post('/v1/admin/buffers', bufferBody('orders', 'shop')))
    await created(
      admin.post(
        '/v1/admin/buffers',
        bufferBody('by-header', 'shop', { groupKey: { mode: 'header', fallbackHeader: 'X-Tenant' } }),
      ),
    )
    await created(
      admin.post(
        '/v1/admin/buffers',
        bufferBody('fallback', 'shop', {
          groupKey: { mode: 'jsonpath', path: '$.constructor.name', fallbackHeader: 'constructor' },
        }),
      ),
    )
    await created(
      admin.post(
        '/v1/admin/buffers',
        bufferBody('signed', 'shop', {
          sourceVerification: { enabled: true, signingSecret: 's3cret', signatureHeader: 'X-Sig' },
        }),
      ),
    )
  })

  after(() => service.stop())

  beforeEach(async () => {
    service.inbox.mode = 'store'
    service.inbox.ownerAnswers = true
    await startOver()
  })

  afterEach(() => expect(service.told.failed).to.deep.equal([]))

  async function created(answer: Promise<Answer>): Promise<void> {
    const { status, text } = await answer
    expect(status, text).to.equal(201)
  }

  async function balance(): Promise<number> {
    const { json } = await admin.get('/v1/admin/credits')
    return (json as { credits: number }).credits
  }

  function ingest(
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
    path = 'shop/orders',
  ): Promise<Answer> {
    return call(`${service.url}/v1/ingest/${path}`, { method: 'POST', headers, body })
  }

  /** Nothing was stored or charged, and the next request works. */
  async function changesNothing(): Promise<void> {
    expect(service.inbox.items).to.have.length(0)
    expect(await balance()).to.equal(credits)
    expect((await ingest('{"customer":"next"}')).status).to.equal(202)
    await startOver()
  }

  async function startOver(): Promise<void> {
    service.inbox.items.length = 0
    credits = await balance()
  }

  async function refuses(answer: Promise<Answer>, status: number, error: string | RegExp): Promise<void> {
    const { status: got, json, headers, text } = await answer
    expect(got, text).to.equal(status)
    expect(headers.get('content-type')).to.match(/^application\/json/)
    const body = json as { error: string }
    if (typeof error === 'string') expect(body.error).to.equal(error)
    else expect(body.error).to.match(error)
    await changesNothing()
  }

  async function refusesAsHtml(answer: Promise<Answer>): Promise<void> {
    const { status, headers, text } = await answer
    expect(status).to.equal(400)
    expect(headers.get('content-type')).to.match(/^text\/html/)
    expect(text).to.include('Bad Request')
    await changesNothing()
  }

  describe('accepted', () => {
    it('stores the bytes as they came and charges what they cost', async () => {
      const body = '{ "customer": "c1", "n": 1.50, "n": 9007199254740993, "__proto__": {"x": 1e400} }'
      const { status, json, headers } = await ingest(body, { 'content-type': 'text/plain' })
      expect(status).to.equal(202)
      expect(headers.get('content-type')).to.match(/^application\/json/)
      const [item] = service.inbox.items
      expect(Buffer.from(item!.payload).toString()).to.equal(body)
      expect(item).to.include({ groupKey: 'c1', explicit: false, credits: 1 })
      expect(json).to.deep.equal({ status: 'accepted', messageId: item!.itemId, itemId: item!.itemId })
      expect(await balance()).to.equal(credits - 1)
    })

    it('charges one credit a started KB of the serialised payload', async () => {
      await ingest(JSON.stringify({ customer: 'c', text: 'x'.repeat(5000) }))
      await ingest(`{"customer":"c"${' '.repeat(5000)}}`)
      expect(service.inbox.items.map((item) => item.credits)).to.deep.equal([5, 1])
      expect(await balance()).to.equal(credits - 6)
    })

    it('settles what it charged', async () => {
      await ingest('{"customer":"c"}')
      await eventually(async () => {
        const [row] = await service.db<{ unsettled: number }[]>`
          SELECT sum(unsettled)::bigint AS unsettled FROM settlements`
        return row?.unsettled === 0
      })
    })

    it('takes scalars, null and arrays where the key comes from a header', async () => {
      for (const body of ['1', 'null', '"text"', '[1]', 'true', '{"a":"\\ud800"}']) {
        expect((await ingest(body, { 'x-tenant': 't' }, 'shop/by-header')).status, body).to.equal(202)
      }
      expect(service.inbox.items.map((item) => item.groupKey)).to.deep.equal(Array(6).fill('t'))
    })

    it('reads percent-encoded ids', async () => {
      expect((await ingest('{"customer":"c"}', {}, 's%68op/%6frders')).status).to.equal(202)
    })

    it('takes depth 64', async () => {
      const deep = `{"customer":"c","d":${'['.repeat(63)}${']'.repeat(63)}}`
      expect((await ingest(deep)).status).to.equal(202)
    })
  })

  describe('message ids', () => {
    it('prefers the body, then the header, and names duplicates by the original', async () => {
      const first = await ingest('{"customer":"c","messageId":"m\\"1"}', { 'x-idempotency-key': 'h' })
      expect(first.json).to.deep.equal({
        status: 'accepted',
        messageId: 'm"1',
        itemId: service.inbox.items[0]!.itemId,
      })
      const second = await ingest('{"customer":"c","messageId":"m\\"1"}')
      expect(second.status).to.equal(202)
      expect(second.json).to.deep.equal({ ...(first.json as object), duplicate: true })
      const byHeader = await ingest('{"customer":"c"}', { 'x-idempotency-key': 'h' })
      expect(byHeader.json).to.include({ messageId: 'h' }).and.not.to.have.property('duplicate')
      await eventually(async () => (await balance()) === credits - 2)
    })

    it('takes a number as its source text and passes over what is no id', async () => {
      await ingest('{"customer":"c","messageId":9007199254740993}')
      for (const value of ['{}', 'null', '""', 'true', '["a"]']) {
        await ingest(`{"customer":"c","messageId":${value}}`)
      }
      const [number, ...others] = service.inbox.items
      expect(number).to.include({ messageId: '9007199254740993', explicit: true })
      expect(others).to.have.length(5)
      for (const item of others) expect(item).to.include({ explicit: false, messageId: item.itemId })
    })

    it('refuses what is too long, naming the field', async () => {
      const long = 'm'.repeat(513)
      await refuses(ingest(JSON.stringify({ customer: 'c', messageId: long })), 400, /messageId/)
      await refuses(
        ingest(JSON.stringify({ customer: 'c', messageId: 'm'.repeat(999_000) })),
        400,
        /messageId/,
      )
      await refuses(ingest('{"customer":"c"}', { 'x-idempotency-key': long }), 400, /X-Idempotency-Key/i)
    })
  })

  describe('group keys', () => {
    const missing = 'Could not extract group key from request'

    it('refuses bodies and values without a key', async () => {
      for (const body of ['1', 'null', '[]', '"x"', 'false', '{}', '{"customer":""}', '{"customer":null}']) {
        await refuses(ingest(body), 400, missing)
      }
      await refuses(ingest('{"customer":{"a":1}}'), 400, missing)
    })

    it('takes numbers as written and booleans as text', async () => {
      for (const value of ['0', 'true', '1e400', '1.0', '-0']) await ingest(`{"customer":${value}}`)
      expect(service.inbox.items.map((item) => item.groupKey)).to.deep.equal([
        '0',
        'true',
        '1e400',
        '1.0',
        '-0',
      ])
    })

    it('finds nothing inherited, in bodies and in headers', async () => {
      await refuses(ingest('{}', {}, 'shop/fallback'), 400, missing)
      expect((await ingest('{}', { constructor: 'k' }, 'shop/fallback')).status).to.equal(202)
      expect(service.inbox.items[0]!.groupKey).to.equal('k')
    })

    it('refuses keys over 1,024 bytes', async () => {
      expect((await ingest(JSON.stringify({ customer: 'é'.repeat(512) }))).status).to.equal(202)
      await startOver()
      await refuses(ingest(JSON.stringify({ customer: 'é'.repeat(513) })), 400, /1024 bytes/)
    })
  })

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
      it(`answers ${what} with the HTML page`, () => refusesAsHtml(ingest(body)))
    }

    it('answers depth 65 and 500,000 in JSON', async () => {
      const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
      await refuses(ingest(`{"customer":"c","d":${deep(64)}}`), 400, /nested/)
      await refuses(ingest(deep(499_000)), 400, /nested/)
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
        const answer = await ingest('{"customer":"c"}', {}, `shop/${id}`)
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
        expect((await ingest('{"customer":"c"}', {}, path)).status, path.slice(0, 40)).to.equal(404)
      }
      await changesNothing()
    })

    it('answers 400 for another project', () =>
      refuses(ingest('{"customer":"c"}', {}, 'other/orders'), 400, 'Buffer does not belong to this project'))

    it('answers other methods with 405, OPTIONS with what is allowed', async () => {
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'HEAD']) {
        const answer = await call(`${service.url}/v1/ingest/shop/orders`, { method })
        expect(answer.status, method).to.equal(405)
        expect(answer.headers.get('allow')).to.equal('POST, OPTIONS')
      }
      const options = await call(`${service.url}/v1/ingest/shop/orders`, { method: 'OPTIONS' })
      expect([options.status, options.headers.get('allow')]).to.deep.equal([204, 'POST, OPTIONS'])
      expect((await call(`${service.url}/v1/ingest/shop`)).status).to.equal(404)
    })
  })

  describe('API keys', () => {
    const body = '{"customer":"c"}'

    it('takes keys of the account and of the project', async () => {
      expect((await ingest(body, { 'x-api-key': ownerKey })).status).to.equal(202)
      const scoped = await admin.post('/v1/admin/api-keys', {
        name: 's',
        role: 'viewer',
        projectIds: ['shop'],
      })
      const { secret } = scoped.json as { secret: string }
      expect((await ingest(body, { 'x-api-key': secret })).status).to.equal(202)
    })

    it('answers 401 for what is no key', async () => {
      const bad = [
        'svk_',
        `svk_${'a'.repeat(48)}`,
        ownerKey.slice(0, -1),
        `${ownerKey}0`,
        ownerKey.toUpperCase(),
        `svk_${ownerKey.slice(4).toUpperCase()}`,
        `${ownerKey}, ${ownerKey}`,
        'x'.repeat(8000),
      ]
      for (const key of bad) {
        const answer = await ingest(body, { 'x-api-key': key })
        expect([answer.status, answer.json], key.slice(0, 60)).to.deep.equal([401, { error: 'Unauthorized' }])
      }
      await refuses(ingest(body, { 'x-api-key': '' }), 401, 'Unauthorized')
    })

    it('judges the key alone when an ID token stands beside it', () =>
      refuses(
        ingest(body, { 'x-api-key': 'svk_no', authorization: `Bearer ${ownerKey}` }),
        401,
        'Unauthorized',
      ))

    it('answers 401 for a revoked key at once', async () => {
      const { json } = await admin.post('/v1/admin/api-keys', { name: 'gone' })
      const { keyId, secret } = json as { keyId: string; secret: string }
      expect((await ingest(body, { 'x-api-key': secret })).status).to.equal(202)
      expect((await admin.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
      await startOver()
      await refuses(ingest(body, { 'x-api-key': secret }), 401, 'Unauthorized')
    })

    it('answers 403 for another account and another project', async () => {
      const denied = 'API key does not have access to this buffer'
      const foreign = await service.ownerKey('rival')
      await refuses(ingest(body, { 'x-api-key': foreign }), 403, denied)
      const scoped = await admin.post('/v1/admin/api-keys', { name: 'o', projectIds: ['other'] })
      const { secret } = scoped.json as { secret: string }
      await refuses(ingest(body, { 'x-api-key': secret }), 403, denied)
    })
  })

  describe('source verification', () => {
    const body = '{"customer": "c"}'
    const signature = createHmac('sha256', 's3cret').update(body).digest('hex')

    it('takes the signature of the raw bytes', async () => {
      expect((await ingest(body, { 'x-sig': signature }, 'shop/signed')).status).to.equal(202)
    })

    it('answers 401 without one', async () => {
      await refuses(ingest(body, {}, 'shop/signed'), 401, 'Missing signature header')
      await refuses(ingest(body, { 'x-sig': '' }, 'shop/signed'), 401, 'Missing signature header')
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
        const answer = await ingest(body, { 'x-sig': header }, 'shop/signed')
        expect([answer.status, answer.json]).to.deep.equal([401, { error: 'Invalid signature' }])
      }
      await changesNothing()
    })

    it('judges the signature before the JSON', () =>
      refuses(ingest('{', { 'x-sig': signature }, 'shop/signed'), 401, 'Invalid signature'))
  })

  describe('state of the buffer', () => {
    it('refuses while disabled, and takes again when enabled', async () => {
      await created(admin.post('/v1/admin/buffers', bufferBody('paused', 'shop', { enabled: false })))
      const body = '{"customer":"c"}'
      await refuses(ingest(body, {}, 'shop/paused'), 400, 'Buffer is disabled')
      expect((await admin.patch('/v1/admin/buffers/paused', { enabled: true })).status).to.equal(200)
      expect((await ingest(body, {}, 'shop/paused')).status).to.equal(202)
    })

    it('judges the key before it', async () => {
      await created(admin.post('/v1/admin/buffers', bufferBody('paused-2', 'shop', { enabled: false })))
      await refuses(ingest('{', { 'x-api-key': 'svk_x' }, 'shop/paused-2'), 401, 'Unauthorized')
    })

    it('answers 404 once deleted', async () => {
      await created(admin.post('/v1/admin/buffers', bufferBody('gone', 'shop')))
      expect((await ingest('{"customer":"c"}', {}, 'shop/gone')).status).to.equal(202)
      expect((await admin.delete('/v1/admin/buffers/gone')).status).to.equal(204)
      await startOver()
      await refuses(ingest('{"customer":"c"}', {}, 'shop/gone'), 404, 'Buffer not found')
    })
  })

  describe('credits', () => {
    let poor: Admin

    before(async () => {
      poor = adminOf(service.url, await service.ownerKey('poor'))
      await created(poor.post('/v1/admin/projects', { projectId: 'poor', name: 'p' }))
      await created(poor.post('/v1/admin/buffers', bufferBody('poor', 'poor')))
      await service.db`UPDATE customers SET credits = 3 WHERE customer_id = 'poor'`
    })

    it('answers 429 with balance and price, and still knows duplicates', async () => {
      const big = (messageId?: string): string =>
        JSON.stringify({ customer: 'c', messageId, text: 'x'.repeat(1800) })
      expect((await ingest(big('m'), {}, 'poor/poor')).status).to.equal(202)
      const refused = await ingest(big('n'), {}, 'poor/poor')
      expect(refused.status).to.equal(429)
      expect(refused.json).to.include({ credits: 1, required: 2 })
      expect(refused.json).to.have.keys('error', 'credits', 'required', 'message')
      expect((await ingest(big(), {}, 'poor/poor')).status).to.equal(429)
      const twin = await ingest(big('m'), {}, 'poor/poor')
      expect(twin.json).to.include({ duplicate: true, itemId: service.inbox.items[0]!.itemId })
      service.inbox.ownerAnswers = false
      expect((await ingest(big('m'), {}, 'poor/poor')).status).to.equal(429)
      expect(service.inbox.items).to.have.length(1)
      expect((await poor.get('/v1/admin/credits')).json).to.include({ credits: 1 })
      expect((await ingest('{"customer":"c"}', {}, 'poor/poor')).status).to.equal(202)
    })
  })

  describe('order of checks', () => {
    it('mends one fault after the other and meets the next', async () => {
      const broke = adminOf(service.url, await service.ownerKey('broke'))
      await created(broke.post('/v1/admin/projects', { projectId: 'broke', name: 'b' }))
      const config = { enabled: false, sourceVerification: { enabled: true, signingSecret: 'k' } }
      await created(broke.post('/v1/admin/buffers', bufferBody('broke', 'broke', config)))
      await service.db`UPDATE customers SET credits = 0 WHERE customer_id = 'broke'`
      const deep = '['.repeat(65) + ']'.repeat(65)
      const tooLong = 'm'.repeat(513)
      const signed = (body: string) => ({
        'x-webhook-signature': createHmac('sha256', 'k').update(body).digest('hex'),
      })
      const errorOf = async (answer: Promise<Answer>) => {
        const { status, json, text } = await answer
        return `${status} ${(json as { error: string } | undefined)?.error ?? text.slice(0, 15)}`
      }
      const bad = { 'x-api-key': 'svk_x', 'x-idempotency-key': tooLong }
      expect(await errorOf(ingest('{', bad, 'shop/broke-x'))).to.match(/^404 Buffer not found/)
      expect(await errorOf(ingest('{', bad, 'shop/broke'))).to.match(/^400 Buffer does not belong/)
      expect(await errorOf(ingest('{', bad, 'broke/broke'))).to.match(/^401 Unauthorized/)
      expect(await errorOf(ingest('{', {}, 'broke/broke'))).to.match(/^400 Buffer is disabled/)
      await broke.patch('/v1/admin/buffers/broke', { enabled: true })
      expect(await errorOf(ingest('{', {}, 'broke/broke'))).to.match(/^401 Missing signature/)
      expect(await errorOf(ingest('{', signed('['), 'broke/broke'))).to.match(/^401 Invalid signature/)
      expect(await errorOf(ingest('{', signed('{'), 'broke/broke'))).to.match(/^400 <!DOCTYPE html>/)
      expect(await errorOf(ingest(deep, signed(deep), 'broke/broke'))).to.match(/^400 .*nested/)
      const keyless = JSON.stringify({ messageId: tooLong })
      expect(await errorOf(ingest(keyless, signed(keyless), 'broke/broke'))).to.match(
        /^400 Could not extract/,
      )
      const long = JSON.stringify({ customer: 'c', messageId: tooLong })
      expect(await errorOf(ingest(long, signed(long), 'broke/broke'))).to.match(/^400 messageId/)
      const poor = JSON.stringify({ customer: 'c' })
      expect(await errorOf(ingest(poor, signed(poor), 'broke/broke'))).to.match(/^429 /)
      await changesNothing()
    })
  })

  describe('faults', () => {
    it('answers 503 and gives the credits back when the item cannot be stored', async () => {
      service.inbox.mode = 'unavailable'
      const answer = await ingest('{"customer":"c"}')
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1'])
      expect(answer.json).to.have.keys('error')
      service.inbox.mode = 'store'
      await eventually(async () => (await balance()) === credits)
      await changesNothing()
    })

    it('answers 500, tells nothing and gives the credits back when the inbox breaks', async () => {
      service.inbox.mode = 'broken'
      const answer = await ingest('{"customer":"c"}')
      expect([answer.status, answer.json]).to.deep.equal([500, { error: 'Internal server error' }])
      expect(answer.headers.get('x-request-id')).to.match(/^[0-9a-f-]{36}$/)
      expect(service.told.failed.splice(0)).to.have.length(1)
      service.inbox.mode = 'store'
      await eventually(async () => (await balance()) === credits)
      await changesNothing()
    })

    it('settles or refunds by a verdict that comes late', async () => {
      service.inbox.mode = 'late'
      for (const id of ['l1', 'l2', 'l3']) {
        const { status, json } = await ingest(`{"customer":"c","messageId":"${id}"}`)
        expect(status).to.equal(202)
        expect(json).not.to.have.property('duplicate')
      }
      expect(await balance()).to.equal(credits - 3)
      const [paid, twin, lost] = service.inbox.verdicts.splice(0)
      paid!('new')
      twin!('duplicate')
      lost!('unknown')
      await eventually(async () => (await balance()) === credits - 1)
      expect(service.told.late.splice(0)).to.deep.equal(['new', 'duplicate', 'unknown'])
    })
  })
})
