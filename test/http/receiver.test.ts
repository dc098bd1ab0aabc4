import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createHealth } from '../../internal/http/health.ts'
import { type Listener, listen } from '../../internal/http/listener.ts'
import { Receiver, type ReceiverBounds } from '../../internal/http/receiver.ts'
import { createHandler } from '../../internal/http/server.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { call } from './caller.ts'

interface Shown {
  receivedAt: number
  method: string
  headers: Record<string, string>
  body: unknown
}

const clock = systemClock()

function start(bounds?: ReceiverBounds, local = true): Promise<Listener> {
  const gate = { closing: false }
  const handler = createHandler({
    telemetry: { failed: () => {}, limited: () => {}, refused: () => {} },
    gate,
    isOutage: () => false,
    version: '0.0.0',
    health: createHealth(clock, '0', {}),
    others: local ? [new Receiver(clock, bounds).middleware] : [],
  })
  return listen(clock, handler, gate, { host: '127.0.0.1', port: 0 })
}

describe('/local/receiver/<name>', () => {
  let listener: Listener

  before(async () => {
    listener = await start({ requests: 3, bytes: 8192, bodyBytes: 4096 })
  })

  after(() => listener.close())

  const url = (name: string) => `${listener.url}/local/receiver/${name}`
  const send = (name: string, body: string, method = 'POST') =>
    call(url(name), { method, body, headers: { 'x-svc-signature': 'abc' } })
  const shown = async (name: string) => (await call(url(name))).json as Shown[]

  it('shows what it accepted, newest first, with headers and the parsed body', async () => {
    expect((await send('first', '{"items":[1,2]}')).status).to.equal(200)
    expect((await send('first', 'no json', 'PUT')).status).to.equal(200)
    const [newest, oldest] = await shown('first')
    expect(newest).to.include({ method: 'PUT', body: 'no json' })
    expect(oldest).to.deep.include({ method: 'POST', body: { items: [1, 2] } })
    expect(oldest!.headers).to.include({ 'x-svc-signature': 'abc' })
    expect(oldest!.receivedAt).to.be.a('number')
    expect(await shown('nothing')).to.deep.equal([])
  })

  it('keeps the sender’s own text of JSON', async () => {
    await send('exact', '{"n":9007199254740993}')
    expect((await call(url('exact'))).text).to.include('"body":{"n":9007199254740993}')
  })

  it('keeps the last requests only', async () => {
    for (let n = 1; n <= 5; n++) await send('many', String(n))
    expect((await shown('many')).map((request) => request.body)).to.deep.equal([5, 4, 3])
  })

  it('bounds the bytes over all names, the oldest go first', async () => {
    for (const name of ['a', 'b', 'c']) await send(name, JSON.stringify('x'.repeat(3000)))
    expect(await shown('a')).to.deep.equal([])
    expect(await shown('b')).to.have.length(1)
    expect(await shown('c')).to.have.length(1)
  })

  it('refuses what is too large, other methods and names that are none', async () => {
    expect((await send('big', 'x'.repeat(5000))).status).to.equal(413)
    expect((await send('big', 'x', 'DELETE')).status).to.equal(405)
    expect((await send('a%2fb', 'x')).status).to.equal(404)
    expect((await send('a/b', 'x')).status).to.equal(404)
    expect(await shown('big')).to.deep.equal([])
  })

  it('does not exist elsewhere than on the local instance', async () => {
    const other = await start(undefined, false)
    const path = `${other.url}/local/receiver/x`
    expect((await call(path, { method: 'POST', body: '{}' })).status).to.equal(404)
    expect((await call(path)).status).to.equal(404)
    await other.close()
  })
})

describe('GET /health', () => {
  it('runs each check once at a time and waits for none too long', async () => {
    let calls = 0
    let release = (): void => {}
    const health = createHealth({ ...clock, after: (_ms, task) => clock.after(5, task) }, '1.2.3', {
      hangs: () => new Promise(() => {}),
      slow: () => {
        calls++
        return new Promise<void>((resolve) => {
          release = resolve
        })
      },
      rejects: () => Promise.reject(new Error('postgres://secret')),
      throws: () => {
        throw new Error('a bug')
      },
    })
    const both = Promise.all([health(), health()])
    release()
    const [first, second] = await both
    expect(first).to.deep.equal({
      status: 'unavailable',
      version: '1.2.3',
      checks: { hangs: 'down', slow: 'ok', rejects: 'down', throws: 'down' },
    })
    expect(second).to.equal(first)
    expect(calls).to.equal(1)
  })

  it('answers other methods with 405', async () => {
    const listener = await start()
    const answer = await call(`${listener.url}/health`, { method: 'POST' })
    expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD, OPTIONS'])
    await listener.close()
  })
})
