import { request } from 'node:http'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { ingestHarnessOfSuite } from './ingest-harness.ts'

describe('POST /v1/ingest/{projectId}/{bufferId}', () => {
  const harness = ingestHarnessOfSuite()

  describe('accepted', () => {
    it('stores the bytes as they came and charges what they cost', async () => {
      const body = '{ "customer": "c1", "n": 1.50, "n": 9007199254740993, "__proto__": {"x": 1e400} }'
      const { status, json, headers } = await harness.ingest(body, { 'content-type': 'text/plain' })
      expect(status).to.equal(202)
      expect(headers.get('content-type')).to.match(/^application\/json/)
      const [item] = harness.service.inbox.items
      expect(Buffer.from(item!.payload).toString()).to.equal(body)
      expect(item).to.include({ groupKey: 'c1', explicit: false, credits: 1 })
      expect(json).to.deep.equal({ status: 'accepted', messageId: item!.itemId, itemId: item!.itemId })
      expect(await harness.balance()).to.equal(harness.credits - 1)
    })

    it('charges one credit a started KB of the serialised payload', async () => {
      await harness.ingest(JSON.stringify({ customer: 'c', text: 'x'.repeat(5000) }))
      await harness.ingest(`{"customer":"c"${' '.repeat(5000)}}`)
      expect(harness.service.inbox.items.map((item) => item.credits)).to.deep.equal([5, 1])
      expect(await harness.balance()).to.equal(harness.credits - 6)
    })

    it('settles what it charged', async () => {
      await harness.ingest('{"customer":"c"}')
      await eventually(async () => {
        const [row] = await harness.service.db<{ unsettled: number }[]>`
          SELECT sum(unsettled)::bigint AS unsettled FROM settlements`
        return row?.unsettled === 0
      })
    })

    it('takes scalars, null and arrays where the key comes from a header', async () => {
      for (const body of ['1', 'null', '"text"', '[1]', 'true', '{"a":"\\ud800"}']) {
        expect((await harness.ingest(body, { 'x-tenant': 't' }, 'shop/by-header')).status, body).to.equal(202)
      }
      expect(harness.service.inbox.items.map((item) => item.groupKey)).to.deep.equal(Array(6).fill('t'))
    })

    it('reads percent-encoded ids', async () => {
      expect((await harness.ingest('{"customer":"c"}', {}, 's%68op/%6frders')).status).to.equal(202)
    })

    it('takes a target with a query, and one in absolute form', async () => {
      const { port } = harness.service
      const path = '/v1/ingest/shop/orders?source=till'
      for (const target of [path, `http://127.0.0.1:${port}${path}`]) {
        const status = await new Promise<number | undefined>((resolve, reject) => {
          const sent = request({ port, method: 'POST', path: target }, (answer) => {
            answer.resume()
            resolve(answer.statusCode)
          })
          sent.on('error', reject)
          sent.end('{"customer":"c"}')
        })
        expect(status, target).to.equal(202)
      }
    })

    it('takes depth 64', async () => {
      const deep = `{"customer":"c","d":${'['.repeat(63)}${']'.repeat(63)}}`
      expect((await harness.ingest(deep)).status).to.equal(202)
    })
  })

  describe('message ids', () => {
    it('prefers the body, then the header, and names duplicates by the original', async () => {
      const first = await harness.ingest('{"customer":"c","messageId":"m\\"1"}', { 'x-idempotency-key': 'h' })
      expect(first.json).to.deep.equal({
        status: 'accepted',
        messageId: 'm"1',
        itemId: harness.service.inbox.items[0]!.itemId,
      })
      const second = await harness.ingest('{"customer":"c","messageId":"m\\"1"}')
      expect(second.status).to.equal(202)
      expect(second.json).to.deep.equal({ ...(first.json as object), duplicate: true })
      const byHeader = await harness.ingest('{"customer":"c"}', { 'x-idempotency-key': 'h' })
      expect(byHeader.json).to.include({ messageId: 'h' }).and.not.to.have.property('duplicate')
      await eventually(async () => (await harness.balance()) === harness.credits - 2)
    })

    it('takes a number as its source text and passes over what is no id', async () => {
      await harness.ingest('{"customer":"c","messageId":9007199254740993}')
      for (const value of ['{}', 'null', '""', 'true', '["a"]']) {
        await harness.ingest(`{"customer":"c","messageId":${value}}`)
      }
      const [number, ...others] = harness.service.inbox.items
      expect(number).to.include({ messageId: '9007199254740993', explicit: true })
      expect(others).to.have.length(5)
      for (const item of others) expect(item).to.include({ explicit: false, messageId: item.itemId })
    })

    it('refuses what is too long, naming the field', async () => {
      const long = 'm'.repeat(513)
      await harness.refuses(
        harness.ingest(JSON.stringify({ customer: 'c', messageId: long })),
        400,
        /messageId/,
      )
      await harness.refuses(
        harness.ingest(JSON.stringify({ customer: 'c', messageId: 'm'.repeat(999_000) })),
        400,
        /messageId/,
      )
      await harness.refuses(
        harness.ingest('{"customer":"c"}', { 'x-idempotency-key': long }),
        400,
        /X-Idempotency-Key/i,
      )
    })
  })

  describe('group keys', () => {
    const missing = 'Could not extract group key from request'

    it('refuses bodies and values without a key', async () => {
      for (const body of ['1', 'null', '[]', '"x"', 'false', '{}', '{"customer":""}', '{"customer":null}']) {
        await harness.refuses(harness.ingest(body), 400, missing)
      }
      await harness.refuses(harness.ingest('{"customer":{"a":1}}'), 400, missing)
    })

    it('takes numbers as written and booleans as text', async () => {
      for (const value of ['0', 'true', '1e400', '1.0', '-0']) await harness.ingest(`{"customer":${value}}`)
      expect(harness.service.inbox.items.map((item) => item.groupKey)).to.deep.equal([
        '0',
        'true',
        '1e400',
        '1.0',
        '-0',
      ])
    })

    it('finds nothing inherited, in bodies and in headers', async () => {
      await harness.refuses(harness.ingest('{}', {}, 'shop/fallback'), 400, missing)
      expect((await harness.ingest('{}', { constructor: 'k' }, 'shop/fallback')).status).to.equal(202)
      expect(harness.service.inbox.items[0]!.groupKey).to.equal('k')
    })

    it('refuses keys over 1,024 bytes', async () => {
      expect((await harness.ingest(JSON.stringify({ customer: 'é'.repeat(512) }))).status).to.equal(202)
      await harness.startOver()
      await harness.refuses(harness.ingest(JSON.stringify({ customer: 'é'.repeat(513) })), 400, /1024 bytes/)
    })
  })
})
