/** What one customer may take of the connections and attempts that all share (docs/architecture/protocol.md, "Delivery"). */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { AttemptResult } from '../../internal/delivery/attempt.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import { eventually as within } from '../support/eventually.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { batch, newClient, target } from './fixture.ts'
import { ManualClock } from './manual-clock.ts'

const DEADLINE_MS = 10_000
const eventually = (holds: () => boolean) => within(holds, { timeoutMs: 30_000 })

describe('a customer whose destinations hang', () => {
  let sink: Sink
  let clock: ManualClock
  let client: DeliveryClient

  beforeEach(async () => {
    sink = await startSink()
    sink.on('/hang', { fault: 'hang' })
    clock = new ManualClock()
    client = newClient({ clock })
  })
  afterEach(async () => {
    const closed = client.close(0)
    clock.advance(0)
    await closed
    await sink.close()
  })

  function attempt(customerId: string, uid: string, url: string): Promise<AttemptResult> {
    const record = { uid, buffer: { customerId, delivery: target(url) } } as BufferRecord
    return client.attempt({ record: () => record, key: `${uid} ${url}`, body: batch })
  }

  /** All buffers of the greedy one have as many attempts as they may. */
  function hang(buffers: number, each: number): { refused: number } {
    const counts = { refused: 0 }
    for (let buffer = 0; buffer < buffers; buffer++)
      for (let n = 0; n < each; n++)
        void attempt('greedy', `b${buffer}`, sink.url('/hang')).then(({ unsent }) => {
          if (unsent) counts.refused++
        })
    return counts
  }

  it('keeps no other customer out of the queue of an origin, however many buffers it has', async () => {
    const counts = hang(1_000, 12)
    await eventually(() => counts.refused > 0)
    const others = ['quiet', 'other'].map((customer) => attempt(customer, 'u', sink.url('/fine')))
    clock.advance(DEADLINE_MS)
    for (const result of await Promise.all(others)) expect(result).to.include({ delivered: true })
  })

  it('gets no place before another customer that waits, and leaves it some from then on', async () => {
    hang(200, 5)
    await sink.waitForCount(64, '/hang', 30_000)
    const first = attempt('quiet', 'u', sink.url('/fine'))
    clock.advance(DEADLINE_MS)
    expect(await first).to.include({ delivered: true })
    for (let n = 0; n < 50; n++)
      expect(await attempt('quiet', 'u', sink.url('/fine'))).to.include({ delivered: true })
    expect(client.gauges().waiting, 'the greedy one still waits').to.be.above(500)
  })

  it('has all of an origin that nobody else uses', async () => {
    hang(10, 10)
    await sink.waitForCount(64, '/hang', 30_000)
    expect(client.gauges()).to.include({ running: 64, waiting: 36 })
  })
})

describe('silent origins of one customer', () => {
  const ORIGINS = 200
  let servers: Server[]
  let sockets: Set<Socket>
  let onData: (socket: Socket) => void
  let sink: Sink
  let clock: ManualClock
  let client: DeliveryClient

  beforeEach(async () => {
    sockets = new Set()
    onData = () => {}
    sink = await startSink()
    servers = await Promise.all(Array.from({ length: ORIGINS }, () => silentServer()))
    clock = new ManualClock()
    client = newClient({ clock, places: { atOnce: 100, perCustomer: 40 } })
  })
  afterEach(async () => {
    const closed = client.close(0)
    clock.advance(0)
    await closed
    for (const socket of sockets) socket.destroy()
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
    await sink.close()
  })

  async function silentServer(): Promise<Server> {
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
      socket.on('data', () => onData(socket))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return server
  }

  const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const send = (customerId: string, url: string, options = {}) =>
    client.send(target(url), 'k', batch, { flow: `of ${customerId}`, customerId, ...options })
  const hang = (customerId: string) => servers.map((server) => send(customerId, urlOf(server)))

  it('stay at its bound together, and another customer starts at once', async () => {
    const hanging = hang('greedy')
    await eventually(() => sockets.size === 40)
    expect(await send('quiet', sink.url())).to.include({ delivered: true })
    expect([client.gauges().running, client.gauges().waiting, sockets.size]).to.deep.equal([40, 160, 40])
    const impatient = send('greedy', 'http://127.0.0.1:1/', { maxWaitMs: 0 })
    clock.advance(0)
    expect(await impatient).to.include({ unsent: true })
    expect(client.gauges().origins, 'its origin is forgotten').to.equal(ORIGINS + 1)
    for (let ended = 40; ended <= ORIGINS; ended += 40) {
      await eventually(() => client.gauges().running === 40 && sockets.size === 40)
      clock.advance(DEADLINE_MS)
      await Promise.all(hanging.slice(ended - 40, ended))
    }
    const results = await Promise.all(hanging)
    expect(results.filter(({ unsent, durationMs }) => unsent || durationMs !== DEADLINE_MS)).to.deep.equal([])
    expect(client.gauges()).to.include({ running: 0, waiting: 0 })
  })

  it('hold an origin of the same customer up for no longer than an attempt takes', async () => {
    const few = servers.slice(0, 8)
    for (const server of few)
      for (let n = 0; n < 20; n++) void send('greedy', urlOf(server), { flow: `f${n}` })
    await eventually(() => sockets.size === 40)
    const first = send('greedy', sink.url())
    clock.advance(DEADLINE_MS)
    expect(await first).to.include({ delivered: true })
    for (let n = 0; n < 20; n++) expect(await send('greedy', sink.url())).to.include({ delivered: true })
    expect(client.gauges().waiting, 'the others still wait').to.be.above(50)
  })

  it('of two customers leave places to one that comes later', async () => {
    for (const customer of ['a', 'b']) hang(customer)
    await eventually(() => sockets.size === 80)
    for (let n = 0; n < 20; n++) expect(await send('quiet', sink.url())).to.include({ delivered: true })
    expect(client.gauges().running).to.equal(80)
  })

  it('of many customers hold another one up for no longer than an attempt takes', async () => {
    for (const customer of ['a', 'b', 'c', 'd', 'e', 'f']) hang(customer)
    await eventually(() => sockets.size === 100)
    const late = send('quiet', sink.url())
    clock.advance(DEADLINE_MS)
    expect(await late).to.include({ delivered: true })
  })

  it('are refused with what waits when the client is closed', async () => {
    const hanging = hang('greedy')
    await eventually(() => sockets.size === 40)
    const closed = client.close(0)
    clock.advance(0)
    const results = await Promise.all(hanging)
    expect(results.filter(({ unsent }) => unsent).length).to.equal(160)
    await closed
    expect(client.gauges()).to.deep.equal({ origins: 0, running: 0, waiting: 0, idleConnections: 0 })
  })

  it('that answer after all keep no more connections open than the customer may have', async () => {
    onData = (socket) =>
      socket.write('HTTP/1.1 200 OK\r\nkeep-alive: timeout=600\r\ncontent-length: 0\r\n\r\n')
    for (const result of await Promise.all(hang('greedy'))) expect(result).to.include({ delivered: true })
    await send('quiet', sink.url())
    await eventually(() => sockets.size === 40)
    expect(client.gauges()).to.include({ idleConnections: 41, running: 0 })
    await send('quiet', sink.url())
    expect(sink.acceptedConnections, 'the other one keeps its own').to.equal(1)
    await send('quiet', urlOf(servers[0]!))
    expect(client.gauges().idleConnections).to.be.within(41, 42)
  })

  it('hold no more bodies than the share of the customer, and another one goes on', async () => {
    client = newClient({ clock, bodyBytes: 8_000_000 })
    const body = new Uint8Array(1_000_000)
    const record = (customerId: string, url: string) =>
      ({ uid: `of ${customerId}`, buffer: { customerId, delivery: target(url) } }) as BufferRecord
    const attempt = (customerId: string, url: string) =>
      client.attempt({ record: () => record(customerId, url), key: 'k', body })
    const room = (customerId: string) => client.hasRoom(record(customerId, sink.url()), body.length)
    const hanging = servers.slice(0, 20).map((server) => attempt('greedy', urlOf(server)))
    const refused = await Promise.all(hanging.slice(5))
    expect(refused.map(({ unsent, error }) => unsent && error)).to.deep.equal(
      refused.map(() => 'nothing was sent: too many bodies wait for destinations'),
    )
    expect([room('greedy'), room('quiet')]).to.deep.equal([false, true])
    for (let n = 0; n < 20; n++) expect(await attempt('quiet', sink.url())).to.include({ delivered: true })
    clock.advance(DEADLINE_MS)
    for (const result of await Promise.all(hanging.slice(0, 5)))
      expect(result).to.include({ errorClass: 'timeout' })
    expect(room('greedy')).to.equal(true)
  })

  it('tell whether an attempt would find room, before its body is built', async () => {
    client = newClient({ clock, limits: { atOnce: 1, waiting: 4 } })
    const url = urlOf(servers[0]!)
    const attempt = (customerId: string) => send(customerId, url)
    const room = (customerId: string) =>
      client.hasRoom(
        { uid: `of ${customerId}`, buffer: { customerId, delivery: target(url) } } as BufferRecord,
        batch.length,
      )
    const held = () => client.gauges().running + client.gauges().waiting
    for (let n = 0; n < 10; n++) {
      const [before, expected] = [held(), room('greedy')]
      void attempt('greedy')
      expect(held() - before, `attempt ${n}`).to.equal(expected ? 1 : 0)
    }
    expect(held()).to.be.within(2, 5)
    expect([room('greedy'), room('quiet')]).to.deep.equal([false, true])
  })
})
