import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type NatsConnection, StringCodec } from 'nats'

import { eventually } from './eventually.ts'
import { NatsProxy } from './nats-proxy.ts'
import { natsAccount } from './servers.ts'

const codec = StringCodec()

describe('the NATS proxy of the fault suite', () => {
  let proxy: NatsProxy
  /** Past the proxy, and through it. */
  let broker: NatsConnection
  let service: NatsConnection
  let asked: string[]

  beforeEach(async () => {
    const { url, port } = await natsAccount()
    proxy = await NatsProxy.to(port)
    const connectTo = (server: string) => {
      const { protocol, host, username, password } = new URL(server)
      return connect({ servers: `${protocol}//${host}`, user: username, pass: password, reconnect: false })
    }
    broker = await connectTo(url)
    service = await connectTo(proxy.through(url))
    asked = []
    broker.subscribe('ask.*', {
      callback: (_, message) => {
        asked.push(message.string())
        message.respond(codec.encode(`answer to ${message.string()}`))
      },
    })
    await broker.flush()
  })

  afterEach(async () => {
    await Promise.all([broker.close(), service.close()])
    await proxy.close()
  })

  const ask = async (text: string, timeout = 30_000) =>
    (await service.request('ask.this', codec.encode(text), { timeout })).string()

  const refusalOf = (promise: Promise<unknown>) => promise.then(() => 'none', String)

  it('passes requests and answers, larger than a chunk too', async () => {
    expect(await ask('one')).to.equal('answer to one')
    const long = 'x'.repeat(500_000)
    expect(await ask(long)).to.equal(`answer to ${long}`)
  })

  it('swallows the picked messages of the broker, and counts them, until it is disarmed', async () => {
    proxy.swallow(({ payload }) => payload.includes('two'))
    expect(await ask('one')).to.equal('answer to one')
    expect(await refusalOf(ask('two', 100))).to.contain('TIMEOUT')
    await eventually(() => proxy.swallowed === 1)
    expect(asked).to.deep.equal(['one', 'two'])
    proxy.disarm()
    expect(await ask('two')).to.equal('answer to two')
    expect(proxy.swallowed).to.equal(1)
  })

  it('loses the answer to one message', async () => {
    const lost = proxy.loseAnswerTo(({ subject }) => subject === 'ask.this')
    expect(await refusalOf(ask('one', 100))).to.contain('TIMEOUT')
    await lost
    expect(asked).to.deep.equal(['one'])
    expect(await ask('two')).to.equal('answer to two')
  })

  it('strikes before a message: those before it arrive, it and those after it do not', async () => {
    let strikes = 0
    const striking = proxy.strikeAt(
      'before',
      ({ payload }) => payload.includes('two'),
      () => {
        strikes += 1
      },
    )
    for (const text of ['one', 'two', 'three']) service.publish('ask.this', codec.encode(text))
    const { frame, answer } = await striking
    expect([frame.payload.toString(), answer, strikes]).to.deep.equal(['two', null, 1])
    await service.closed()
    await eventually(() => asked.length > 0)
    await broker.flush()
    expect(asked).to.deep.equal(['one'])
  })

  it('strikes after a message: the broker has acted on it, the service does not hear so', async () => {
    const striking = proxy.strikeAt(
      'after',
      ({ payload }) => payload.includes('two'),
      () => {},
    )
    expect(await ask('one')).to.equal('answer to one')
    const refusal = refusalOf(ask('two', 500))
    const { frame, answer } = await striking
    expect([frame.payload.toString(), answer?.payload.toString()]).to.deep.equal(['two', 'answer to two'])
    expect(await refusal).to.contain('TIMEOUT')
    expect(asked).to.deep.equal(['one', 'two'])
  })

  it('lets everything else pass while a strike takes its time', async () => {
    let end = () => {}
    const lasting = new Promise<void>((resolve) => {
      end = resolve
    })
    const striking = proxy.strikeAt(
      'before',
      ({ payload }) => payload.includes('two'),
      () => lasting,
    )
    service.publish('ask.this', codec.encode('two'))
    expect(await ask('three')).to.equal('answer to three')
    end()
    await striking
    await service.closed()
    expect(asked).to.deep.equal(['three'])
  })
})
