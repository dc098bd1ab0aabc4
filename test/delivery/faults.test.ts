import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { AttemptResult, SendOptions } from '../../internal/delivery/attempt.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, type SinkAnswer, startSink } from '../support/sink.ts'
import { batch, newClient, target } from './fixture.ts'
import { ManualClock } from './manual-clock.ts'

describe('a destination that misbehaves', () => {
  let sink: Sink
  let clock: ManualClock
  let client: DeliveryClient

  beforeEach(async () => {
    sink = await startSink()
    clock = new ManualClock()
    client = newClient({ clock })
  })
  afterEach(async () => {
    const closed = client.close(0)
    clock.advance(0)
    await closed
    await sink.close()
  })

  /** Nothing is left of the attempt: no socket at either end, no timer, no entry. */
  async function nothingLeaks(): Promise<void> {
    await sink.waitFor((_, open) => open === 0)
    await eventually(() => client.gauges().origins === 0)
    expect(clock.pending).to.equal(0)
  }

  const atOnce: [string, SinkAnswer, Partial<AttemptResult>][] = [
    ['resets', { fault: 'reset' }, { errorClass: 'connection', error: 'connection reset (ECONNRESET)' }],
    ['closes without an answer', { fault: 'close' }, { errorClass: 'connection' }],
    ['breaks off in the head', { fault: 'half-head', status: 200 }, { errorClass: 'connection' }],
    ['answers what is not HTTP', { fault: 'garbage' }, { errorClass: 'connection' }],
    ['sends too large a head', { headers: { 'x-big': 'x'.repeat(20_000) } }, { errorClass: 'connection' }],
  ]
  for (const [what, answer, expected] of atOnce) {
    it(`that ${what} has failed at once`, async () => {
      sink.otherwise(answer)
      const result = await client.send(target(sink.url()), 'k', batch)
      expect(result).to.include({
        delivered: false,
        retryable: true,
        statusCode: 0,
        responseBody: null,
        ...expected,
      })
      expect(sink.requests().length).to.equal(1)
      await nothingLeaks()
    })
  }

  const never: [string, SinkAnswer][] = [
    ['hangs', { fault: 'hang' }],
    ['sends its head byte by byte', { fault: 'slow-head' }],
  ]
  for (const [what, answer] of never) {
    it(`that ${what} has failed after 10 s, not before`, async () => {
      sink.otherwise(answer)
      let result: AttemptResult | undefined
      const sent = client.send(target(sink.url()), 'k', batch).then((value) => {
        result = value
      })
      await sink.waitForCount(1)
      clock.advance(9_999)
      await new Promise(setImmediate)
      expect(result).to.equal(undefined)
      clock.advance(1)
      await sent
      expect(result).to.deep.include({
        delivered: false,
        retryable: true,
        statusCode: 0,
        errorClass: 'timeout',
      })
      expect(result).to.deep.include({ error: 'no response within 10000 ms', durationMs: 10_000 })
      await nothingLeaks()
    })
  }

  it('with a body that never ends is judged by its status, and loses its connection', async () => {
    for (const [status, delivered] of [
      [200, true],
      [404, false],
      [503, false],
    ] as const) {
      sink.otherwise({ fault: 'endless', status })
      const result = await client.send(target(sink.url()), 'k', batch, { readsBody: true })
      expect(result).to.include({ delivered, statusCode: status })
      expect(result.responseBody).to.have.length(4_096)
      await nothingLeaks()
    }
  })

  describe('whose body trickles', () => {
    async function headOf(status: number, options: SendOptions = {}) {
      sink.otherwise({ fault: 'drip', status })
      const headArrived = Promise.withResolvers<void>()
      const onHead = () => headArrived.resolve()
      subscribe('undici:request:headers', onHead)
      const sent = client.send(target(sink.url()), 'k', batch, options)
      await headArrived.promise
      unsubscribe('undici:request:headers', onHead)
      return sent
    }

    it('has acknowledged by its head, and keeps its connection to the deadline', async () => {
      expect(await headOf(200)).to.include({ delivered: true, statusCode: 200, durationMs: 0 })
      expect(client.gauges()).to.include({ running: 1, idleConnections: 0 })
      clock.advance(9_999)
      expect(sink.openConnections).to.equal(1)
      clock.advance(1)
      await nothingLeaks()
    })

    it('is waited for a second where its beginning is kept', async () => {
      for (const [status, options] of [
        [200, { readsBody: true }],
        [404, {}],
        [503, {}],
      ] as const) {
        const sent = headOf(status, options)
        await eventually(() => clock.pending === 2)
        clock.advance(1_000)
        expect(await sent).to.deep.include({ statusCode: status, durationMs: 1_000 })
        clock.advance(9_000)
        await nothingLeaks()
      }
    })

    it('holds its place until it is over', async () => {
      client = newClient({ clock, limits: { atOnce: 1 } })
      const first = client.send(target(sink.url()), 'k', batch)
      expect(await first).to.include({ delivered: true })
      expect(await headOf(200)).to.include({ delivered: true })
      sink.otherwise({})
      const next = client.send(target(sink.url()), 'k', batch)
      expect(client.gauges()).to.include({ running: 1, waiting: 1 })
      clock.advance(10_000)
      expect(await next).to.include({ delivered: true })
    })
  })

  it('whose body breaks off is judged by its status', async () => {
    for (const [status, delivered] of [
      [200, true],
      [500, false],
    ] as const) {
      sink.otherwise({ fault: 'half', status })
      const result = await client.send(target(sink.url()), 'k', batch, { readsBody: true })
      expect(result).to.include({ delivered, statusCode: status, responseBody: 'only the beginning' })
      await nothingLeaks()
    }
  })

  it('that is not there has refused', async () => {
    const gone = await startSink()
    const url = gone.url()
    await gone.close()
    const result = await client.send(target(url), 'k', batch)
    expect(result).to.include({
      errorClass: 'connection',
      statusCode: 0,
      error: 'connection refused (ECONNREFUSED)',
    })
    await nothingLeaks()
  })

  it('delays no other destination, and no other buffer at its own address', async () => {
    const other = await startSink()
    sink.on('/hang', { fault: 'hang' })
    let hanging = 1_000
    for (let i = 0; i < 1_000; i++) {
      client.send(target(sink.url('/hang')), `h${i}`, batch, { flow: 'hangs' }).then(() => hanging--)
    }
    await sink.waitForCount(48, '/hang')
    const sends = []
    for (let i = 0; i < 50; i++) {
      sends.push(client.send(target(other.url()), `o${i}`, batch, { flow: 'hangs' }))
      sends.push(client.send(target(sink.url('/fine')), `f${i}`, batch, { flow: 'fine' }))
    }
    expect((await Promise.all(sends)).every((result) => result.delivered)).to.equal(true)
    expect([hanging, sink.requests('/hang').length]).to.deep.equal([1_000, 48])
    await other.close()
  })

  it('makes others at its address wait, which costs them no part of their 10 s and no attempt', async () => {
    client = newClient({ clock, limits: { atOnce: 1 } })
    const held: (() => void)[] = []
    sink.otherwise(() => new Promise((resolve) => held.push(() => resolve({}))))
    const sends = ['a', 'b', 'c'].map((key) => client.send(target(sink.url()), key, batch))
    for (let served = 0; served < 3; served++) {
      await eventually(() => held.length > served)
      clock.advance(9_000)
      held[served]!()
      expect(await sends[served]).to.include({ delivered: true, durationMs: 9_000 })
    }
  })
})

describe('a server that speaks in its own way', () => {
  let server: Server
  let sockets: Set<Socket>
  let onData: (socket: Socket) => void
  let clock: ManualClock
  let client: DeliveryClient

  beforeEach(async () => {
    sockets = new Set()
    server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
      socket.on('data', () => onData(socket))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    clock = new ManualClock()
    client = newClient({ clock })
  })
  afterEach(async () => {
    const closed = client.close(0)
    clock.advance(0)
    await closed
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })

  const url = (scheme = 'http') => `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/`

  for (const informational of ['100 Continue', '102 Processing', '103 Early Hints', '199 Whatever']) {
    it(`is answered by its final head, not by ${informational}`, async () => {
      onData = (socket) => {
        socket.write(`HTTP/1.1 ${informational}\r\nlink: </a>\r\n\r\nHTTP/1.1 ${informational}\r\n\r\n`)
        socket.write('HTTP/1.1 503 Later\r\ncontent-length: 5\r\n\r\nlater')
      }
      for (let sent = 0; sent < 2; sent++) {
        const result = await client.send(target(url()), 'k', batch)
        expect(result).to.include({ statusCode: 503, responseBody: 'later' })
      }
      expect([sockets.size, client.gauges().idleConnections]).to.deep.equal([1, 1])
    })
  }

  it('cannot send informational heads without end', async () => {
    onData = (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(200))
    expect(await client.send(target(url()), 'k', batch)).to.include({
      statusCode: 0,
      errorClass: 'connection',
      error: 'too many informational responses (TooManyHeadsError)',
    })
    await eventually(() => sockets.size === 0)
  })

  it('cannot hold an attempt with informational heads alone', async () => {
    let heads = 0
    onData = (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n', () => heads++), 1)
      socket.once('close', () => clearInterval(timer))
    }
    const sent = client.send(target(url()), 'k', batch)
    await eventually(() => heads > 5)
    clock.advance(10_000)
    expect(await sent).to.include({ delivered: false, statusCode: 0, errorClass: 'timeout' })
    await eventually(() => sockets.size === 0)
  })

  it('cannot switch protocols', async () => {
    onData = (socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n')
    const result = await client.send(target(url()), 'k', batch)
    expect(result).to.include({ delivered: false, retryable: true, statusCode: 0, errorClass: 'connection' })
    await eventually(() => sockets.size === 0)
  })

  it('cannot answer before it is asked', async () => {
    let asked = 0
    onData = (socket) => {
      asked++
      // A whole second response, sent ahead, must not acknowledge the next batch.
      socket.write('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    }
    for (let i = 1; i <= 3; i++) {
      expect(await client.send(target(url()), 'k', batch)).to.include({ delivered: false })
      expect(asked).to.be.at.most(i)
    }
  })

  it('that never reads has failed after 10 s', async () => {
    onData = (socket) => socket.pause()
    const sent = client.send(target(url()), 'k', new Uint8Array(16_000_000))
    await eventually(() => sockets.size === 1)
    clock.advance(10_000)
    expect(await sent).to.include({ errorClass: 'timeout', error: 'no response within 10000 ms' })
    onData = () => {}
    for (const socket of sockets) socket.resume()
    await eventually(() => sockets.size === 0)
  })

  it('that accepts but never shakes hands has failed after 10 s, and its socket is closed', async () => {
    onData = () => {}
    const sent = client.send(target(url('https')), 'k', batch)
    await eventually(() => sockets.size === 1)
    clock.advance(10_000)
    expect(await sent).to.include({ errorClass: 'timeout', error: 'no connection within 10000 ms' })
    await eventually(() => sockets.size === 0)
    expect(client.gauges().origins).to.equal(0)
  })
})
