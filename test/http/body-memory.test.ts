import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { type Admin, adminOf, bufferBody } from './caller.ts'
import { RawClient } from './raw-client.ts'
import { startService, type TestService } from './service.ts'

const LIMIT = 100_000
/** Of one body: above what is skipped of a refused one, and two are more than the budget. */
const LONG = 80_000
const BUDGET = 120_000
const BODY = '{"customer":"c"}'

describe('the memory of bodies', () => {
  let service: TestService
  let admin: Admin
  let clients: RawClient[] = []

  before(async () => {
    service = await startService({
      maxBodyBytes: LIMIT,
      maxBodiesBytes: BUDGET,
    })
    admin = adminOf(service.url, await service.ownerKey('acme'))
    for (const projectId of ['shop', 'other'])
      await admin.post('/v1/admin/projects', { projectId, name: projectId })
    for (const [id, more] of [
      ['orders', {}],
      ['off', { enabled: false }],
    ] as const) {
      expect((await admin.post('/v1/admin/buffers', bufferBody(id, 'shop', more))).status).to.equal(201)
    }
    const other = adminOf(service.url, await service.ownerKey('globex'))
    await other.post('/v1/admin/projects', { projectId: 'store', name: 'store' })
    expect((await other.post('/v1/admin/buffers', bufferBody('sales', 'store'))).status).to.equal(201)
  })

  beforeEach(() => {
    service.inbox.items.length = 0
  })

  afterEach(async () => {
    for (const client of clients) client.close()
    clients = []
    expect(service.told.failed).to.deep.equal([])
  })

  after(() => service.stop())

  async function open(): Promise<RawClient> {
    const client = await RawClient.open(service.port)
    clients.push(client)
    return client
  }

  /** The refusal, while the body is under way, and that the connection ends with it. */
  async function refusedEarly(client: RawClient, status: number): Promise<RawClient> {
    const answer = await client.answer()
    expect(answer.status, answer.body).to.equal(status)
    expect(JSON.parse(answer.body)).to.have.property('error')
    expect(answer.headers.get('connection')).to.equal('close')
    expect(client.interim).to.equal(0)
    expect(service.inbox.items).to.have.length(0)
    return client
  }

  describe('of webhooks that their head refuses', () => {
    const cases: Record<string, [path: string, status: number, ...headers: string[]]> = {
      'to no buffer': ['shop/none', 404],
      'to no address': ['shop/a.b', 404],
      'to another project': ['other/orders', 400],
      'to a disabled buffer': ['shop/off', 400],
      'with a bad key': ['shop/orders', 401, 'X-API-Key: svk_none'],
    }
    for (const [what, [path, status, ...headers]] of Object.entries(cases)) {
      it(`is not used ${what}: a long body is not awaited`, async () => {
        const client = await open()
        client.send(head(path, `Content-Length: ${LONG}`, ...headers))
        await refusedEarly(client, status)
      })

      it(`is not used ${what}: no body is invited`, async () => {
        const client = await open()
        client.send(head(path, 'Content-Length: 2', 'Expect: 100-continue', ...headers))
        await refusedEarly(client, status)
      })

      it(`is not used ${what}: pieces are not awaited without end`, async () => {
        const client = await open()
        client.send(head(path, 'Transfer-Encoding: chunked', ...headers) + chunk('x'.repeat(LONG)))
        await refusedEarly(client, status)
      })

      it(`is not used ${what}: a short body leaves the connection`, async () => {
        const client = await open()
        for (let n = 0; n < 2; n++) {
          client.send(webhook(path, BODY, ...headers))
          const answer = await client.answer()
          expect([answer.status, answer.headers.get('connection')]).to.deep.equal([status, 'keep-alive'])
        }
      })
    }

    it('is not asked before what its headers alone tell', async () => {
      const long = await open()
      long.send(head('shop/none', `Content-Length: ${LIMIT + 1}`))
      await refusedEarly(long, 413)
      const encoded = await open()
      encoded.send(webhook('shop/none', BODY, 'Content-Encoding: gzip'))
      await refusedEarly(encoded, 415)
    })

    it('is asked again once the body is whole', async () => {
      const { json } = await admin.post('/v1/admin/api-keys', { name: 'k', role: 'viewer' })
      const { keyId, secret } = json as { keyId: string; secret: string }
      const client = await open()
      client.send(head('shop/orders', 'Content-Length: 16', `X-API-Key: ${secret}`, 'Expect: 100-continue'))
      await new Promise((resolve) => client.socket.once('data', resolve))
      expect((await admin.delete(`/v1/admin/api-keys/${keyId}`)).status).to.be.below(300)
      client.send(BODY)
      expect((await client.answer()).status).to.equal(401)
    })
  })

  describe('of webhooks under way', () => {
    /** Bytes of bodies that stand still. */
    let held = 0

    beforeEach(async () => {
      held = 0
      await eventually(() => service.bodies.of('probe').has(BUDGET))
    })

    /** A connection whose body stands still after so many bytes, which are counted; one is missing. */
    async function underWay(bytes = LONG - 1, path = 'shop/orders'): Promise<RawClient> {
      const client = await open()
      client.send(head(path, `Content-Length: ${bytes + 1}`, 'Expect: 100-continue'))
      await new Promise((resolve) => client.socket.once('data', resolve))
      client.send(whole(bytes + 1).slice(0, -1))
      held += bytes
      await eventually(() => !service.bodies.of('probe').has(BUDGET - held + 1))
      return client
    }

    async function isBusy(bytes: string): Promise<void> {
      const client = await open()
      client.send(bytes)
      const answer = await client.answer()
      expect(answer.status, answer.body).to.equal(503)
      expect(JSON.parse(answer.body)).to.deep.equal({
        error: 'Too many request bodies are under way, try again',
      })
      expect([answer.headers.get('retry-after'), answer.headers.get('connection')]).to.deep.equal([
        '1',
        'close',
      ])
      client.close()
    }

    async function hasRoom(): Promise<void> {
      await eventually(async () => {
        const client = await open()
        client.send(webhook('shop/orders', whole(LONG)))
        const { status } = await client.answer()
        client.close()
        expect(status).to.equal(202)
      })
    }

    it('is refused beyond the budget, by length and by pieces', async () => {
      const first = await underWay()
      await isBusy(head('shop/orders', `Content-Length: ${LONG}`))
      await isBusy(head('shop/orders', 'Transfer-Encoding: chunked') + chunk('x'.repeat(LONG)))
      expect(service.inbox.items).to.have.length(0)
      first.send('}')
      expect((await first.answer()).status).to.equal(202)
      await hasRoom()
    })

    it('is no body yet while it is only announced', async () => {
      for (let n = 0; n < 10; n++) {
        const client = await open()
        client.send(head('shop/orders', `Content-Length: ${LIMIT}`))
      }
      await hasRoom()
    })

    it('leaves room to other customers: a customer with two may hold as much as it leaves', async () => {
      await underWay(BUDGET / 4 - 1)
      await underWay(BUDGET / 4 - 1)
      await isBusy(head('shop/orders', 'Content-Length: 1000'))
      await isBusy(head('shop/orders', 'Transfer-Encoding: chunked') + chunk('x'.repeat(1_000)))
      await underWay(BUDGET / 4 - 1, 'store/sales')
      await isBusy(head('store/sales', 'Content-Length: 1000'))
    })

    it('makes room when it stands still and nothing is left: that of who holds most is answered 503', async () => {
      const slow = await underWay()
      const other = await underWay(BUDGET - LONG, 'store/sales')
      await eventually(async () => {
        const client = await open()
        client.send(webhook('store/sales', BODY))
        expect((await client.answer()).status).to.equal(202)
      })
      const answer = await slow.answer()
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1'])
      other.send('}')
      expect((await other.answer()).status).to.equal(202)
    })

    it('may be as long as the room, one at a time', async () => {
      const client = await open()
      client.send(head('shop/orders', 'Transfer-Encoding: chunked'))
      const body = whole(LIMIT)
      for (let from = 0; from < LIMIT; from += LIMIT / 4)
        client.send(chunk(body.slice(from, from + LIMIT / 4)))
      client.send(chunk(''))
      expect((await client.answer()).status).to.equal(202)
    })

    it('counts until the answer', async () => {
      const release = service.inbox.hold()
      const held = await open()
      held.send(webhook('shop/orders', whole(LONG)))
      await eventually(() => service.inbox.waiting === 1)
      await isBusy(head('shop/orders', `Content-Length: ${LONG}`))
      release()
      expect((await held.answer()).status).to.equal(202)
      await hasRoom()
    })

    it('is free again after all that goes wrong', async () => {
      const gone = await underWay()
      gone.close()
      await hasRoom()
      const held = service.inbox.hold()
      const left = await open()
      await eventually(() => left.ended === false)
      left.send(webhook('shop/orders', whole(1_000)))
      await eventually(() => service.inbox.waiting === 1)
      left.close()
      held()
      const long = await open()
      long.send(head('shop/orders', 'Transfer-Encoding: chunked') + chunk('x'.repeat(LIMIT + 1)))
      expect((await long.answer()).status).to.be.oneOf([413, 503])
      await hasRoom()
      await hasRoom()
    })

    it('is one with that of management requests', async () => {
      await underWay()
      const answer = await admin.post('/v1/admin/projects', { projectId: 'x', name: 'x'.repeat(LONG) })
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1'])
      // Whose webhooks hold all that they may can still change their buffers.
      const small = await admin.post('/v1/admin/projects', '{')
      expect(small.status).to.equal(400)
      clients.at(-1)?.close()
      await hasRoom()
    })
  })
})

function head(path: string, ...headers: string[]): string {
  return `POST /v1/ingest/${path} HTTP/1.1\r\n${['Host: x', ...headers].join('\r\n')}\r\n\r\n`
}

function webhook(path: string, body: string, ...headers: string[]): string {
  return head(path, `Content-Length: ${Buffer.byteLength(body)}`, ...headers) + body
}

/** A good body of exactly this length, bytes. */
function whole(length: number): string {
  const [head, tail] = ['{"customer":"c","text":"', '"}']
  return head + 'x'.repeat(length - head.length - tail.length) + tail
}

function chunk(bytes: string): string {
  return `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n`
}
