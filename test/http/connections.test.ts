/** Who is served when there are as many connections as may be (docs/architecture/protocol.md, "Connections"). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { SPARED_MS } from '../../internal/http/connections.ts'
import { type Listener, listen } from '../../internal/http/listener.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { eventually } from '../support/eventually.ts'
import { RawClient } from './raw-client.ts'

const LIMIT = 20
/** Connections beyond it that are told so. */
const SURPLUS = 2
const QUICK = 'GET /quick HTTP/1.1\r\nHost: x\r\n\r\n'
const HELD = 'GET /held HTTP/1.1\r\nHost: x\r\n\r\n'
const PATIENT = { timeoutMs: 60_000 }

describe('connections at their bound', () => {
  let clock: ManualClock
  let listener: Listener
  let clients: RawClient[]
  /** Answers that wait for `finish`. */
  let held: ServerResponse[]
  let refused: number[]

  beforeEach(async () => {
    clock = new ManualClock()
    clients = []
    held = []
    refused = []
    const handler = (req: IncomingMessage, res: ServerResponse) => {
      if (req.url === '/held') held.push(res)
      else res.end('{}')
      // As undici does to a request whose body it has passed on.
      if (req.url === '/passed-on') Object.assign(req, { socket: null })
    }
    const onRefused = (status: number) => refused.push(status)
    const options = { host: '127.0.0.1', port: 0, maxConnections: LIMIT, onRefused }
    listener = await listen(clock, handler as never, { closing: false }, options)
  })

  afterEach(async () => {
    for (const client of clients) client.close()
    const closed = listener.close(0)
    clock.advance(SPARED_MS)
    await closed
  })

  async function open(): Promise<RawClient> {
    const client = await RawClient.open(listener.port)
    clients.push(client)
    return client
  }

  async function isServed(client: RawClient): Promise<void> {
    client.socket.write(QUICK)
    expect((await client.answer()).status).to.equal(200)
  }

  async function isRefused(client: RawClient): Promise<void> {
    client.socket.write(QUICK)
    const { status, headers, body } = await client.answer()
    expect([status, headers.get('retry-after')]).to.deep.equal([503, '1'])
    expect(JSON.parse(body)).to.deep.equal({ error: 'Too many connections, try again' })
    await client.closed()
  }

  /** Connections that idle, each for a millisecond less than the one before it. */
  async function idle(count = LIMIT): Promise<RawClient[]> {
    const idling: RawClient[] = []
    for (let n = 0; n < count; n++) {
      const client = await open()
      await isServed(client)
      // It may idle a moment after its answer has come, and surely does before the next one has.
      await isServed(client)
      clock.advance(1)
      idling.push(client)
    }
    return idling
  }

  async function busy(count: number): Promise<RawClient[]> {
    const running = await Promise.all(Array.from({ length: count }, open))
    for (const client of running) client.socket.write(HELD)
    await eventually(() => expect(held).to.have.length(count), PATIENT)
    return running
  }

  /** The others are still there. */
  async function areClosed(idling: readonly RawClient[], closed: readonly RawClient[]): Promise<void> {
    for (const client of closed) await client.closed()
    for (const client of idling) if (!closed.includes(client)) await isServed(client)
  }

  it('idle again after a request that was passed on', async () => {
    for (let n = 0; n < LIMIT; n++) {
      const client = await open()
      client.socket.write('GET /passed-on HTTP/1.1\r\nHost: x\r\n\r\n')
      expect((await client.answer()).status).to.equal(200)
    }
    clock.advance(SPARED_MS)
    await isServed(await open())
    await eventually(() => clients[0]!.ended)
  })

  it('give the place of the one that has idled longest to whoever comes', async () => {
    const idling = await idle()
    await isServed(idling[0]!)
    clock.advance(SPARED_MS)
    await isServed(await open())
    await isServed(await open())
    expect(refused).to.deep.equal([])
    // The first has had a request since.
    await areClosed(idling, idling.slice(1, 3))
  })

  it('give away the place of one that sends no whole head, or nothing', async () => {
    const silent = await open()
    const slow = await open()
    slow.socket.write('GET / HTTP/1.1\r\nHost:')
    const idling = await idle(LIMIT - 2)
    clock.advance(SPARED_MS)
    await isServed(await open())
    await isServed(await open())
    await areClosed(idling, [])
    await Promise.all([silent.closed(), slow.closed()])
  })

  it('let the surplus be told so, close any more, and serve the next once one has closed', async () => {
    const running = await busy(LIMIT)
    const told = [await open(), await open()]
    await (await open()).closed()
    for (const client of told) await isRefused(client)
    expect(refused, 'counted').to.deep.equal([503, 503])
    held[0]!.end('{}')
    expect((await running[0]!.answer()).status).to.equal(200)
    running[0]!.close()
    await eventually(async () => isServed(await open()), PATIENT)
  })

  it('stay while their requests are under way: whoever comes is told so, as long as all are', async () => {
    const running = await busy(LIMIT)
    clock.advance(10 * SPARED_MS)
    await isRefused(await open())
    expect(refused).to.deep.equal([503])
    held[3]!.end('{}')
    expect((await running[3]!.answer()).status).to.equal(200)
    await isServed(running[3]!)
    clock.advance(SPARED_MS)
    await isServed(await open())
    await running[3]!.closed()
    for (const res of held) if (!res.writableEnded) res.end('{}')
    for (const [n, client] of running.entries())
      if (n !== 3) expect((await client.answer()).status).to.equal(200)
  })

  it('stay while the second of two requests that came at once is under way', async () => {
    const client = await open()
    client.socket.write(QUICK + HELD)
    expect((await client.answer()).status).to.equal(200)
    await eventually(() => held.length === 1, PATIENT)
    const idling = await idle(LIMIT - 1)
    clock.advance(SPARED_MS)
    for (let n = 0; n < LIMIT - 1; n++) await isServed(await open())
    for (const each of idling) await each.closed()
    held[0]!.end('{}')
    expect((await client.answer()).status).to.equal(200)
  })

  it('stay when they have idled for less than a second: the next request may be on its way', async () => {
    const idling = await idle()
    const late = await open()
    await isRefused(await open())
    await areClosed(idling, [])
    clock.advance(SPARED_MS)
    // Its request comes when there is somebody to close.
    await isServed(late)
    await areClosed(idling, [idling[0]!])
  })

  it('make room again for those that are closed at once, however many idle', async () => {
    for (let n = 0; n < LIMIT + SURPLUS; n++) await open()
    const beyond = await open()
    await beyond.closed()
    clock.advance(SPARED_MS)
    await (await open()).closed()
    for (let n = 0; n < LIMIT; n++) await isServed(await open())
    expect(refused).to.deep.equal([])
  })

  it('count each connection once, however it ends', async () => {
    for (let round = 0; round < 3; round++) {
      const idling = await idle()
      clock.advance(SPARED_MS)
      await isServed(await open())
      await idling[0]!.closed()
      for (const client of clients) client.close()
      clock.advance(SPARED_MS)
    }
    // All of them are closed, but the server may not know yet: those that idle make room.
    const running = await busy(LIMIT)
    await isRefused(await open())
    for (const res of held) res.end('{}')
    for (const client of running) expect((await client.answer()).status).to.equal(200)
  })
})
