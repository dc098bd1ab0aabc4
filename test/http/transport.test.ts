import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { adminOf, bufferBody } from './caller.ts'
import { RawClient } from './raw-client.ts'
import { startService, type TestService } from './service.ts'

const LIMIT = 100_000
const PATH = '/v1/ingest/shop/orders'
const GOOD = '{"customer":"c"}'

/** What a sender does on the wire, past every client library. */
describe('bodies on the wire', () => {
  let service: TestService
  /** For what is to be too slow. */
  let hasty: TestService
  let client: RawClient

  before(async () => {
    service = await started(10_000)
    hasty = await started(2_000)
  })

  after(async () => {
    client.close()
    await service.stop()
    await hasty.stop()
  })

  async function started(requestTimeoutMs: number): Promise<TestService> {
    const made = await startService({ maxBodyBytes: LIMIT, listener: { requestTimeoutMs } })
    const admin = adminOf(made.url, await made.ownerKey('acme'))
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    expect((await admin.post('/v1/admin/buffers', bufferBody('orders', 'shop'))).status).to.equal(201)
    return made
  }

  beforeEach(async () => {
    for (const { inbox } of [service, hasty]) inbox.items.length = 0
    client?.close()
    client = await RawClient.open(service.port)
  })

  function head(...headers: string[]): string {
    return `POST ${PATH} HTTP/1.1\r\nHost: x\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`
  }

  function withLength(body: string | Buffer, ...headers: string[]): Buffer {
    return Buffer.concat([
      Buffer.from(head(`Content-Length: ${Buffer.byteLength(body)}`, ...headers)),
      Buffer.from(body),
    ])
  }

  function chunk(bytes: string): string {
    return `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n`
  }

  /** The refusal, that nothing was stored, and that the next request works. */
  async function refused(status: number, by = service): Promise<void> {
    const answer = await client.answer()
    expect(answer.status, answer.body).to.equal(status)
    expect(answer.headers.get('content-type')).to.match(/^application\/json/)
    expect(JSON.parse(answer.body)).to.have.property('error').that.is.a('string')
    expect(answer.headers.get('connection')).to.equal('close')
    expect(by.inbox.items).to.have.length(0)
    const next = await RawClient.open(by.port)
    next.send(withLength(GOOD))
    expect((await next.answer()).status).to.equal(202)
    next.close()
  }

  it('keeps the connection alive over accepted and refused webhooks', async () => {
    for (const [body, status] of [
      [GOOD, 202],
      ['', 400],
      ['{}', 400],
      [GOOD, 202],
    ] as const) {
      client.send(withLength(body))
      const answer = await client.answer()
      expect(answer.status).to.equal(status)
      expect(Number(answer.headers.get('content-length'))).to.equal(Buffer.byteLength(answer.body))
    }
    expect(client.ended).to.equal(false)
  })

  it('takes pipelined requests and bodies in pieces', async () => {
    client.send(Buffer.concat([withLength(GOOD), withLength(GOOD)]))
    client.send(head('Transfer-Encoding: chunked') + chunk('{"customer"') + chunk(':"c"}') + chunk(''))
    for (let n = 0; n < 3; n++) expect((await client.answer()).status).to.equal(202)
    expect(Buffer.from(service.inbox.items[2]!.payload).toString()).to.equal(GOOD)
  })

  it('takes a body of exactly the limit', async () => {
    const text = 'x'.repeat(LIMIT - '{"customer":"c","t":""}'.length)
    client.send(withLength(`{"customer":"c","t":"${text}"}`))
    expect((await client.answer()).status).to.equal(202)
  })

  it('refuses by Content-Length before a byte of the body came', async () => {
    client.send(head(`Content-Length: ${LIMIT + 1}`))
    await refused(413)
  })

  it('refuses by chunks, while the client is still sending', async () => {
    client.send(head('Transfer-Encoding: chunked'))
    for (let n = 0; n < 20; n++) client.send(chunk('x'.repeat(LIMIT / 10)))
    await refused(413)
  })

  it('lets a client that sends all before it reads have the answer', async () => {
    const body = 'x'.repeat(8_000_000)
    client.socket.pause()
    client.send(head(`Content-Length: ${body.length}`))
    await new Promise<void>((resolve, reject) => {
      client.socket.write(body, (error) => (error ? reject(error) : resolve()))
    })
    client.socket.resume()
    await refused(413)
    await client.closed()
  })

  it('closes on a client that never stops sending', async () => {
    client.send(head('Transfer-Encoding: chunked'))
    const piece = chunk('x'.repeat(1_000_000))
    const pump = (): void => {
      if (!client.ended) client.socket.write(piece, () => setImmediate(pump))
    }
    pump()
    await refused(413)
    await client.closed()
  })

  it('never invites a body that it refuses', async () => {
    client.send(head(`Content-Length: ${LIMIT + 1}`, 'Expect: 100-continue'))
    await refused(413)
    expect(client.interim).to.equal(0)
  })

  it('invites a body that it takes', async () => {
    client.send(head(`Content-Length: ${GOOD.length}`, 'Expect: 100-continue'))
    const first = await new Promise<Buffer>((resolve) => client.socket.once('data', resolve))
    expect(first.toString()).to.match(/^HTTP\/1.1 100 /)
    client.send(GOOD)
    expect((await client.answer()).status).to.equal(202)
    expect(client.interim).to.equal(1)
  })

  it('refuses an encoded body, takes identity', async () => {
    client.send(withLength(GOOD, 'Content-Encoding: identity'))
    expect((await client.answer()).status).to.equal(202)
    service.inbox.items.length = 0
    client.send(withLength(gzipSync(GOOD), 'Content-Encoding: gzip'))
    await refused(415)
  })

  it('answers 408 to a body that is too slow', async () => {
    client = await RawClient.open(hasty.port)
    client.send(head(`Content-Length: ${GOOD.length}`))
    client.send('{"cust')
    await refused(408, hasty)
    await client.closed()
  })

  it('answers 408 to headers that are too slow', async () => {
    client = await RawClient.open(hasty.port)
    client.send(`POST ${PATH} HTTP/1.1\r\nHost:`)
    await refused(408, hasty)
  })

  it('survives a client that goes away in the middle', async () => {
    client.send(head(`Content-Length: ${GOOD.length}`))
    client.send('{"cust')
    client.close()
    client = await RawClient.open(service.port)
    client.send(withLength(GOOD))
    expect((await client.answer()).status).to.equal(202)
    expect(service.inbox.items).to.have.length(1)
  })

  it('answers what is no HTTP with 400, and too many headers with 431', async () => {
    client.send('\x16\x03\x01 hello\r\n\r\n')
    await refused(400)
    client.close()
    service.inbox.items.length = 0
    client = await RawClient.open(service.port)
    client.send(withLength(GOOD, `X-Large: ${'x'.repeat(40_000)}`))
    await refused(431)
    expect(service.told.refused.slice(-2), 'counted').to.deep.equal([400, 431])
  })

  it('says why a request without a host, or with another expectation, is refused', async () => {
    client.send(`POST ${PATH} HTTP/1.1\r\nContent-Length: 0\r\n\r\n`)
    const hostless = await client.answer()
    expect(hostless.status).to.equal(400)
    expect(JSON.parse(hostless.body)).to.deep.equal({ error: 'A request must have a Host header' })
    client = await RawClient.open(service.port)
    client.send(head('Content-Length: 0', 'Expect: a-miracle'))
    const unmet = await client.answer()
    expect(unmet.status).to.equal(417)
    expect(JSON.parse(unmet.body)).to.deep.equal({ error: 'Only 100-continue can be expected' })
    expect(service.inbox.items).to.have.length(0)
  })

  it('refuses two Host headers, equal ones too', async () => {
    for (const second of ['Host: other.example', 'hOST: x', 'Host:']) {
      client.send(head(second, 'Content-Length: 0'))
      const { status, body } = await client.answer()
      expect(status, second).to.equal(400)
      expect(JSON.parse(body)).to.deep.equal({ error: 'A request must have one Host header' })
      client = await RawClient.open(service.port)
    }
    expect(service.inbox.items).to.have.length(0)
  })

  it('refuses a body with two lengths', async () => {
    client.send(head('Content-Length: 16', 'Transfer-Encoding: chunked') + GOOD)
    await refused(400)
  })

  it('answers HEAD without a body', async () => {
    client.send(`HEAD ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect((await client.answer({ head: true })).status).to.equal(405)
    client.send('HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n')
    expect((await client.answer({ head: true })).status).to.equal(200)
    client.send(withLength(GOOD))
    expect((await client.answer()).status).to.equal(202)
  })

  it('reads the whole URL of a proxy and leaves its query out', async () => {
    client.send(Buffer.from(withLength(GOOD).toString().replace(PATH, `http://host${PATH}?a=1`)))
    expect((await client.answer()).status).to.equal(202)
  })
})

describe('closing the listener', () => {
  it('finishes what runs, tells clients to close, and takes nothing new', async () => {
    const service = await startService()
    const admin = adminOf(service.url, await service.ownerKey('acme'))
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    await admin.post('/v1/admin/buffers', bufferBody('orders', 'shop'))
    const idle = await RawClient.open(service.port)
    const busy = await RawClient.open(service.port)
    busy.send(
      `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: ${GOOD.length}\r\nExpect: 100-continue\r\n\r\n`,
    )
    await new Promise((resolve) => busy.socket.once('data', resolve))
    const silent = await RawClient.open(service.port)
    const closed = service.listener.close(5_000)
    // Under way when the closing began, as far as its sender can tell.
    idle.send(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: ${GOOD.length}\r\n\r\n${GOOD}`)
    const last = await idle.answer()
    expect([last.status, last.headers.get('connection')]).to.deep.equal([202, 'close'])
    await Promise.all([idle.closed(), silent.closed()])
    busy.send(GOOD)
    const answer = await busy.answer()
    expect([answer.status, answer.headers.get('connection')]).to.deep.equal([202, 'close'])
    await busy.closed()
    await closed
    expect(service.inbox.items).to.have.length(2)
    const late = await RawClient.open(service.port).catch((error: NodeJS.ErrnoException) => error.code)
    expect(late).to.equal('ECONNREFUSED')
    await service.stop()
  })

  it('cuts what does not end in time', async () => {
    const service = await startService()
    const stuck = await RawClient.open(service.port)
    stuck.send(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n`)
    await new Promise((resolve) => stuck.socket.once('data', resolve))
    await service.listener.close(50)
    await stuck.closed()
    await service.stop()
  })
})
