import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { fetch } from 'undici'
import { inTurn, redirectTo, type Sink, startSink } from './sink.ts'

const post = (url: string, body: string) => fetch(url, { method: 'POST', body, redirect: 'manual' })

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: Error) => error,
  )

describe('the sink of the tests', () => {
  let sink: Sink

  beforeEach(async () => {
    sink = await startSink()
  })
  afterEach(() => sink.close())

  it('records requests in order and answers 200', async () => {
    expect((await post(sink.url('/a?b=1'), '{"n":1}')).status).to.equal(200)
    await post(sink.url('/c'), 'zwei ü')
    expect(sink.requests().map(({ order, method, path }) => [order, method, path])).to.deep.equal([
      [0, 'POST', '/a?b=1'],
      [1, 'POST', '/c'],
    ])
    expect(sink.requests('/a')[0]?.json()).to.deep.equal({ n: 1 })
    expect(sink.requests('/c')[0]?.body).to.deep.equal(Buffer.from('zwei ü'))
  })

  it('answers by path, by function and in turn', async () => {
    sink.on('/500', { status: 500, body: 'broken' })
    sink.on('/echo', (request) => ({ body: request.body, headers: { 'x-order': String(request.order) } }))
    sink.on('/turn', inTurn({ status: 503 }, { status: 204 }))
    sink.otherwise(redirectTo('/elsewhere'))
    const broken = await post(sink.url('/500'), '')
    expect([broken.status, await broken.text()]).to.deep.equal([500, 'broken'])
    expect(await (await post(sink.url('/echo'), 'hello')).text()).to.equal('hello')
    const turns = []
    for (let i = 0; i < 3; i++) turns.push((await post(sink.url('/turn'), '')).status)
    expect(turns).to.deep.equal([503, 204, 204])
    expect((await post(sink.url('/any'), '')).headers.get('location')).to.equal('/elsewhere')
  })

  it('breaks answers as told', async () => {
    for (const fault of ['reset', 'close', 'half-head', 'garbage'] as const) {
      sink.on(`/${fault}`, { fault })
      expect(await failure(post(sink.url(`/${fault}`), 'x')), fault).to.be.an('error')
    }
    sink.on('/half', { fault: 'half' })
    const half = await post(sink.url('/half'), 'x')
    expect(half.status).to.equal(200)
    expect(await failure(half.text())).to.be.an('error')
  })

  it('waits for requests and for connections to go, and tells what it saw when it waits in vain', async () => {
    const two = sink.waitForCount(2, '/x')
    await post(sink.url('/x'), '1')
    await post(sink.url('/y'), '2')
    await post(sink.url('/x'), '3')
    expect((await two).map((request) => request.body.toString())).to.deep.equal(['1', '2', '3'])
    const error = await failure(sink.waitForCount(9, '/x', 10))
    expect(String(error)).to.contain('3 requests').and.to.contain('POST /y')
  })
})
