import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { adminOf, bufferBody } from './caller.ts'
import { RawClient } from './raw-client.ts'
import { startService, type TestService } from './service.ts'

const LIMIT = 100_000
const PATH = '/v1/ingest/shop/orders'
const BODY = '{"customer":"c"}'
const HEALTH = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n'
const GARBAGE = '\x16\x03\x01 hello\r\n\r\n'

/** Requests that follow one another on a connection before the first is answered. */
describe('pipelined requests', () => {
  let service: TestService
  /** For what is to be too slow. */
  let hasty: TestService
  let client: RawClient
  let release = (): void => {}

  before(async () => {
    service = await started(10_000)
    hasty = await started(2_000)
  })

  after(async () => {
    await service.stop()
    await hasty.stop()
  })

  beforeEach(async () => {
    for (const { inbox } of [service, hasty]) inbox.items.length = 0
    client = await RawClient.open(service.port)
  })

  afterEach(() => {
    release()
    client.close()
    expect(service.told.failed).to.deep.equal([])
  })

  async function started(requestTimeoutMs: number): Promise<TestService> {
    const made = await startService({ maxBodyBytes: LIMIT, listener: { requestTimeoutMs } })
    const admin = adminOf(made.url, await made.ownerKey('acme'))
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    expect((await admin.post('/v1/admin/buffers', bufferBody('orders', 'shop'))).status).to.equal(201)
    return made
  }

  /** Sends bytes whose first request waits at the broker until `release`. */
  async function sendHeld(bytes: string): Promise<void> {
    release = service.inbox.hold()
    client.send(bytes)
    await eventually(() => service.inbox.waiting === 1)
  }

  /** The next answers, of this status each; the last says whether the connection goes on. */
  async function answers(...statuses: number[]): Promise<string | undefined> {
    let connection: string | undefined
    for (const status of statuses) {
      const answer = await client.answer()
      expect(answer.status, answer.body).to.equal(status)
      connection = answer.headers.get('connection')
    }
    return connection
  }

  it('run one after another, in their order', async () => {
    await sendHeld(webhook('{"customer":"c","n":1}') + webhook('{"customer":"c","n":2}') + HEALTH)
    expect(service.inbox.waiting).to.equal(1)
    release()
    await answers(202, 202, 200)
    const payloads = service.inbox.items.map(({ payload }) => JSON.parse(Buffer.from(payload).toString()).n)
    expect(payloads).to.deep.equal([1, 2])
  })

  it('are all answered, however many there are', async () => {
    const count = 2_000
    await sendHeld(webhook().repeat(count))
    release()
    await answers(...Array<number>(count).fill(202))
    expect(service.inbox.items).to.have.length(count)
  })

  it('are answered to a client that has closed its side', async () => {
    release = service.inbox.hold()
    client.send(webhook() + webhook())
    client.socket.end()
    await eventually(() => service.inbox.waiting === 1)
    release()
    await answers(202, 202)
    await client.closed()
  })

  describe('before what is no request', () => {
    const cases: Record<string, [bytes: string, status: number]> = {
      garbage: [GARBAGE, 400],
      'two lengths': [`${head('Content-Length: 2', 'Transfer-Encoding: chunked')}{}`, 400],
      'too many headers': [webhook(BODY, `X-Large: ${'x'.repeat(40_000)}`), 431],
      'a tunnel': ['CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
      'another protocol': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    }
    for (const [what, [bytes, status]] of Object.entries(cases)) {
      it(`are answered first: ${what}`, async () => {
        await sendHeld(webhook() + webhook())
        client.send(bytes)
        await roundTrip()
        release()
        expect(await answers(202, 202, status)).to.equal('close')
        await client.closed()
        expect(service.inbox.items).to.have.length(2)
      })
    }

    it('are answered first: half a request', async () => {
      await sendHeld(webhook() + webhook())
      client.socket.end('POST /v1')
      await roundTrip()
      release()
      expect(await answers(202, 202, 400)).to.equal('close')
      await client.closed()
    })

    it('are answered before the one whose body breaks off', async () => {
      await sendHeld(webhook() + head('Transfer-Encoding: chunked'))
      client.send('no length\r\n')
      await roundTrip()
      release()
      expect(await answers(202, 400)).to.equal('close')
      await client.closed()
    })

    it('are answered before the one that is too slow, also when it is whole at last', async () => {
      client.close()
      client = await RawClient.open(hasty.port)
      release = hasty.inbox.hold()
      client.send(webhook() + head('Content-Length: 10'))
      await eventually(() => hasty.inbox.waiting === 1)
      // Another connection that is as slow, from a moment later on.
      const later = await RawClient.open(hasty.port)
      later.send(head('Content-Length: 10'))
      expect((await later.answer()).status).to.equal(408)
      client.send('x'.repeat(10))
      await roundTrip(hasty)
      release()
      expect(await answers(202, 408)).to.equal('close')
      await client.closed()
    })
  })

  describe('behind an answer that closes the connection', () => {
    const closing: Record<string, [bytes: string, status: number]> = {
      'too large by its length': [webhook('x'.repeat(LIMIT + 1)), 413],
      'too large by its chunks': [
        `${head('Transfer-Encoding: chunked')}${chunk('x'.repeat(LIMIT + 1))}${chunk('')}`,
        413,
      ],
      encoded: [webhook(BODY, 'Content-Encoding: gzip'), 415],
      'of another expectation': [webhook('', 'Expect: a-miracle'), 417],
      'of no host': ['GET /health HTTP/1.1\r\n\r\n', 400],
      'the last by its own word': [webhook(BODY, 'Connection: close'), 202],
      'of HTTP/1.0': [webhook().replace('HTTP/1.1', 'HTTP/1.0'), 202],
    }
    for (const [what, [bytes, status]] of Object.entries(closing)) {
      it(`are never taken: ${what}`, async () => {
        client.send(bytes + webhook())
        expect(await answers(status)).to.equal('close')
        // Too late as well, while the connection goes down.
        client.send(webhook())
        await client.closed()
        await roundTrip()
        expect(service.inbox.items).to.have.length(status === 202 ? 1 : 0)
      })
    }

    it('are never taken: while the listener closes', async () => {
      const going = await started(10_000)
      client.close()
      client = await RawClient.open(going.port)
      release = going.inbox.hold()
      client.send(webhook() + webhook())
      await eventually(() => going.inbox.waiting === 1)
      const closed = going.listener.close(10_000)
      release()
      expect(await answers(202)).to.equal('close')
      await client.closed()
      await closed
      expect(going.inbox.items).to.have.length(1)
      await going.stop()
    })
  })

  /** What was sent before is read once this resolves: the service answers on another connection. */
  async function roundTrip(to = service): Promise<void> {
    const other = await RawClient.open(to.port)
    other.send(HEALTH)
    await other.answer()
    other.close()
  }
})

function head(...headers: string[]): string {
  return `POST ${PATH} HTTP/1.1\r\n${['Host: x', ...headers].join('\r\n')}\r\n\r\n`
}

function webhook(body = BODY, ...headers: string[]): string {
  return head(`Content-Length: ${Buffer.byteLength(body)}`, ...headers) + body
}

function chunk(bytes: string): string {
  return `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n`
}
