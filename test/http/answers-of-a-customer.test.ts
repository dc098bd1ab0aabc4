/** How many answers a customer may have on their way (docs/architecture/protocol.md, "Connections"). */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import type { ListenerOptions } from '../../internal/http/listener.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { eventually } from '../support/eventually.ts'
import { type Admin, type Answer, adminOf } from './caller.ts'
import { startService, type TestService } from './service.ts'

const PATIENT = { timeoutMs: 60_000 }
/** Their list is more than the buffers of two sockets take. */
const PROJECTS = 5_000
const RATE = 1
/** Of all keys of a customer. */
const BURST = 4

describe('answers of one customer that nobody reads', () => {
  let service: TestService
  let clients: Socket[] = []
  /** Of the limits alone. */
  const clock = new ManualClock()

  afterEach(async () => {
    for (const client of clients) client.destroy()
    clients = []
    await service.stop()
  })

  async function serve(listener: Partial<ListenerOptions> = {}): Promise<void> {
    service = await startService({
      limits: { keyRequestsPerSecond: RATE },
      limitsClock: clock,
      listener,
    })
    clock.advance(60_000)
    await service.ownerKey('acme')
    await service.db`INSERT INTO projects (project_id, customer_id, name)
      SELECT 'p' || n, 'acme', repeat('x', 5000) FROM generate_series(1, ${PROJECTS}::int) n`
  }

  async function caller(customerId = 'acme'): Promise<Admin> {
    return adminOf(service.url, await service.ownerKey(customerId))
  }

  /** A connection that has read the first bytes of a long list, and reads no more. */
  async function unread(): Promise<Socket> {
    const client = connect({ port: service.port, host: '127.0.0.1' })
    clients.push(client)
    client.on('error', () => {})
    const key = await service.ownerKey('acme')
    client.write(`GET /v1/admin/projects?customerId=acme HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`)
    const [first] = (await once(client, 'data')) as [Buffer]
    client.pause()
    expect(first.toString('latin1')).to.match(/^HTTP\/1\.1 200 /)
    // So that its size is not what refuses the next.
    clock.advance(600_000)
    return client
  }

  /** The answer once it is there. */
  function kept(asked: Promise<Answer>): { answer: Answer | undefined } {
    const kept: { answer: Answer | undefined } = { answer: undefined }
    void asked.then((answer) => {
      kept.answer = answer
    })
    return kept
  }

  /** So many requests of somebody else are answered. */
  async function othersAreServed(count = 10): Promise<void> {
    for (let n = 0; n < count; n++) {
      const other = await caller(`other${n}`)
      expect((await other.get('/v1/admin/credits')).status).to.equal(200)
    }
  }

  it('keep its next read waiting, and nothing else, until one is read', async () => {
    await serve()
    const first = await unread()
    await unread()
    const next = kept((await caller()).get('/v1/admin/credits'))
    const states = kept((await caller()).get('/v1/admin/buffer-states'))
    await othersAreServed()
    // A key that leaked can be revoked, whatever is done with it.
    clock.advance(60_000)
    const admin = await caller()
    const made = await admin.post('/v1/admin/api-keys', { name: 'k', role: 'viewer' })
    expect(made.status).to.equal(201)
    const { keyId } = made.json as { keyId: string }
    expect((await admin.delete(`/v1/admin/api-keys/${keyId}`)).status).to.be.below(300)
    expect([next.answer, states.answer]).to.deep.equal([undefined, undefined])
    first.resume()
    await eventually(() => expect(next.answer?.status).to.equal(200), PATIENT)
    await eventually(() => expect(states.answer?.status).to.equal(200), PATIENT)
  })

  it('keep it waiting until a connection has closed', async () => {
    await serve()
    const first = await unread()
    await unread()
    const next = kept((await caller()).get('/v1/admin/credits'))
    await othersAreServed()
    expect(next.answer).to.equal(undefined)
    first.destroy()
    await eventually(() => expect(next.answer?.status).to.equal(200), PATIENT)
  })

  it('keep it waiting until they are given up', async () => {
    await serve({ answerStallMs: 1_000 })
    const both = [await unread(), await unread()]
    const next = await (await caller()).get('/v1/admin/credits')
    expect(next.status).to.equal(200)
    const reset = Promise.race(both.map((client) => once(client, 'error')))
    for (const client of both) client.resume()
    expect((await reset)[0]).to.have.property('code', 'ECONNRESET')
  })

  it('leave room to as many waiting requests as may come at once, and refuse more', async () => {
    await serve()
    await unread()
    const last = await unread()
    clock.advance(60_000)
    const asked: { answer: Answer | undefined }[] = []
    for (let n = 0; n < 2 * BURST; n++) {
      asked.push(kept((await caller()).get('/v1/admin/credits')))
      await othersAreServed(2)
      // So that its rate is not what refuses the next.
      clock.advance(60_000)
    }
    const answers = () => asked.flatMap(({ answer }) => answer ?? [])
    await eventually(() => expect(answers()).to.have.length(BURST), PATIENT)
    for (const { status, headers } of answers())
      expect([status, headers.get('retry-after')]).to.deep.equal([429, '1'])
    expect(service.told.limited).to.deep.equal(Array(BURST).fill('customer'))
    last.resume()
    const taken = () => answers().filter(({ status }) => status === 200)
    await eventually(() => expect(taken()).to.have.length(BURST), PATIENT)
  })
})
