import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import type { Deliverer } from '../../internal/shard/ports.ts'
import { eventually } from '../support/eventually.ts'
import { redirectTo, type Sink, startSink } from '../support/sink.ts'
import { batch, newClient, target } from './fixture.ts'

const KEY = 'grp:abc:v7'

describe('the delivery client', () => {
  let sink: Sink
  let client: DeliveryClient

  beforeEach(async () => {
    sink = await startSink()
    client = newClient()
  })
  afterEach(async () => {
    await client.close()
    await sink.close()
  })

  it('keeps no secret of its request in the answer', async () => {
    sink.otherwise({ status: 400, body: 'you sent s3cret-value' })
    const { responseBody } = await client.send(
      target(sink.url(), { headers: { 'x-key': 's3cret-value' } }),
      KEY,
      batch,
    )
    expect(responseBody).to.equal('you sent [redacted]')
  })

  describe('sends', () => {
    it('the exact bytes with every configured header, its own and the signature', async () => {
      const body = Buffer.from('{"items":[{"payload":1.0e+0 ,"p":"ü\\u0000"}]}')
      const signing = { type: 'hmac-sha256' as const, secret: 'sécret', header: 'X-Svc-Signature' }
      const headers = { Authorization: 'Bearer t', 'x-empty': '', 'x-latin': 'ü' }
      const result = await client.send(target(sink.url('/hook?a=1&b=%20'), { headers, signing }), KEY, body)
      expect(result).to.include({
        delivered: true,
        retryable: false,
        statusCode: 200,
        errorClass: null,
        error: null,
      })
      const [request] = sink.requests()
      expect([request?.method, request?.path, request?.body]).to.deep.equal(['POST', '/hook?a=1&b=%20', body])
      expect(request?.headers).to.deep.include({
        authorization: 'Bearer t',
        'x-empty': '',
        'x-latin': 'ü',
        'content-type': 'application/json',
        'content-length': String(body.length),
        'user-agent': 'Penstock/1.2.3',
        'x-idempotency-key': KEY,
        'x-svc-signature': createHmac('sha256', 'sécret').update(body).digest('hex'),
        host: `127.0.0.1:${sink.port}`,
      })
    })

    it('with PUT, a configured user agent and idempotency header, and no signature unless configured', async () => {
      const headers = { 'User-Agent': 'mine' }
      await client.send(
        target(sink.url(), { method: 'PUT', idempotencyHeader: 'X-Once', headers }),
        KEY,
        batch,
      )
      const [request] = sink.requests()
      expect([request?.method, request?.headers['x-once']]).to.deep.equal(['PUT', KEY])
      expect(request?.headers['user-agent']).to.equal('mine')
      expect(Object.keys(request?.headers ?? {}).join()).not.to.match(/signature|x-idempotency-key/)
    })

    it('its own headers once, whatever was stored under their names', async () => {
      const headers = {
        'X-Idempotency-Key': 'forged',
        'Content-Length': '1',
        Host: 'other',
        'transfer-encoding': 'chunked',
      }
      expect(await client.send(target(sink.url(), { headers }), KEY, batch)).to.include({ delivered: true })
      const names = sink
        .requests()[0]
        ?.rawHeaders.filter((_, i) => i % 2 === 0)
        .map((name) => name.toLowerCase())
      expect(names)
        .to.deep.equal([...new Set(names)])
        .and.not.to.include('transfer-encoding')
      expect(sink.requests()[0]?.headers).to.include({
        'x-idempotency-key': KEY,
        'content-length': String(batch.length),
      })
    })

    it('what a record says at the time of the call', async () => {
      const record = { uid: 'u', buffer: { delivery: target(sink.url('/current')) } } as BufferRecord
      const deliverer: Deliverer = client
      expect(
        await deliverer.attempt({ record: () => record, key: KEY, body: batch, proceed: () => true }),
      ).to.include({ delivered: true })
      expect(sink.requests()[0]?.path).to.equal('/current')
    })

    it('a failure, not an exception, for a header that no wire carries', async () => {
      const result = await client.send(target(sink.url(), { headers: { 'x-a': 'b\r\nx-c: d' } }), KEY, batch)
      expect(result).to.include({
        delivered: false,
        retryable: true,
        statusCode: 0,
        errorClass: 'connection',
      })
      expect(result.error).to.contain('cannot be sent')
      expect(sink.requests()).to.deep.equal([])
    })
  })

  describe('judges', () => {
    const cases = [
      [[200, 201, 202, 204, 299], { delivered: true, retryable: false, errorClass: null, error: null }],
      [[300, 302, 304, 307, 308, 600, 999], { delivered: false, retryable: true, errorClass: 'http_other' }],
      [[400, 401, 404, 408, 410, 429, 499], { delivered: false, retryable: false, errorClass: 'http_4xx' }],
      [[500, 502, 503, 504, 599], { delivered: false, retryable: true, errorClass: 'http_5xx' }],
    ] as const
    for (const [statuses, outcome] of cases) {
      it(`${statuses.join(', ')} as ${outcome.errorClass ?? 'delivered'}`, async () => {
        for (const status of statuses) {
          sink.otherwise({ status })
          const result = await client.send(target(sink.url()), KEY, batch)
          expect(result, String(status)).to.include({ ...outcome, statusCode: status })
          if (!outcome.delivered) expect(result.error).to.contain(String(status))
        }
      })
    }

    it('a redirect as a failure that nobody follows', async () => {
      for (const status of [301, 302, 303, 307, 308]) {
        sink.on('/moved', redirectTo(sink.url('/there'), status))
        const result = await client.send(target(sink.url('/moved')), KEY, batch)
        expect(result).to.include({
          delivered: false,
          retryable: true,
          statusCode: status,
          errorClass: 'http_other',
        })
      }
      expect(sink.requests('/there')).to.deep.equal([])
    })
  })

  describe('keeps of the response', () => {
    it('nothing when it has no body', async () => {
      sink.otherwise({ status: 204 })
      expect((await client.send(target(sink.url()), KEY, batch)).responseBody).to.equal(null)
    })

    it('the first 4 KB as text, without half a character', async () => {
      sink.otherwise({ status: 500, body: `x${'ü'.repeat(4_000)}` })
      expect((await client.send(target(sink.url()), KEY, batch)).responseBody).to.equal(
        `x${'ü'.repeat(2_047)}`,
      )
    })

    it('text whatever the bytes', async () => {
      sink.otherwise({ body: Buffer.from([0xff, 0x41, 0x00]) })
      const { responseBody } = await client.send(target(sink.url()), KEY, batch, { readsBody: true })
      expect(responseBody).to.equal('\ufffdA\u0000')
    })

    it('nothing of a 2xx that nobody reads', async () => {
      sink.otherwise({ body: 'thanks' })
      expect((await client.send(target(sink.url()), KEY, batch)).responseBody).to.equal(null)
    })
  })

  describe('uses connections', () => {
    it('again after a complete response, also one of 60 KB', async () => {
      sink.otherwise((request) => ({ status: request.order % 2 ? 500 : 200, body: 'x'.repeat(60_000) }))
      for (let i = 0; i < 20; i++) await client.send(target(sink.url()), KEY, batch)
      expect([sink.requests().length, sink.acceptedConnections]).to.deep.equal([20, 1])
      expect(client.gauges()).to.deep.equal({ origins: 1, running: 0, waiting: 0, idleConnections: 1 })
    })

    it('not again when the destination closes them, and forgets the origin', async () => {
      sink.otherwise({ headers: { connection: 'close' } })
      for (let i = 0; i < 5; i++) {
        expect(await client.send(target(sink.url()), KEY, batch)).to.include({ delivered: true })
      }
      expect(sink.acceptedConnections).to.equal(5)
      await sink.waitFor((_, open) => open === 0)
      await eventually(() => client.gauges().origins === 0)
    })

    it('up to the cap for any number of attempts', async () => {
      await client.close()
      client = newClient({ limits: { atOnce: 8 } })
      const sends = Array.from({ length: 2_000 }, (_, i) => client.send(target(sink.url()), `k${i}`, batch))
      const results = await Promise.all(sends)
      expect(results.every((result) => result.delivered)).to.equal(true)
      expect(new Set(sink.requests().map((request) => request.headers['x-idempotency-key'])).size).to.equal(
        2_000,
      )
      expect(sink.acceptedConnections).to.be.within(1, 8)
    })
  })
})
