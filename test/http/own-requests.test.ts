import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createHealth } from '../../internal/http/health.ts'
import { type Listener, listen } from '../../internal/http/listener.ts'
import { isLoopback, isOwnHost, ownRequests } from '../../internal/http/own-requests.ts'
import { Receiver } from '../../internal/http/receiver.ts'
import { createHandler } from '../../internal/http/server.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { RawClient } from './raw-client.ts'

const clock = systemClock()

describe('requests to the receiver of the local instance', () => {
  let listener: Listener

  before(async () => {
    const gate = { closing: false }
    const handler = createHandler({
      telemetry: { failed: () => {}, limited: () => {}, refused: () => {} },
      gate,
      isOutage: () => false,
      version: '0.0.0',
      health: createHealth(clock, '0', {}),
      others: [ownRequests('127.0.0.1'), new Receiver(clock).middleware],
    })
    listener = await listen(clock, handler, gate, { host: '127.0.0.1', port: 0 })
  })
  after(() => listener.close())

  async function ask(target: string, host: string): Promise<[number, string]> {
    const client = await RawClient.open(listener.port)
    client.send(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    const { status, body } = await client.answer()
    client.socket.destroy()
    return [status, body]
  }

  it('are answered when they are meant for this machine', async () => {
    for (const host of ['127.0.0.1', `localhost:${listener.port}`, '[::1]:8080', '127.9.9.9', 'LOCALHOST'])
      expect(await ask('/local/receiver/x', host), host).to.deep.equal([200, '[]\n'])
  })

  it('are refused under a name of anybody else, whose page a browser here may show', async () => {
    for (const host of [
      'rebound.example',
      'localhost.example',
      '127.0.0.1.example',
      '10.1.2.3',
      '[fe80::1]',
      'x@localhost',
    ])
      expect(await ask('/local/receiver/x', host), host).to.deep.equal([
        400,
        '{"error":"The receiver is reached by an IP address or as localhost, and by no other name"}\n',
      ])
  })

  it('are refused with a target that is no path', async () => {
    for (const target of ['http://localhost/local/receiver/x', 'http://other.example/local/receiver/../../x'])
      expect(await ask(target, 'localhost'), target).to.deep.equal([
        400,
        '{"error":"The target of a request to the receiver must be a path"}\n',
      ])
  })

  it('name no step of a path', async () => {
    for (const name of ['.', '..', '../x', '%2e%2e', 'a/b', ''])
      expect((await ask(`/local/receiver/${name}`, 'localhost'))[0], name).to.equal(404)
  })

  it('leave everything else alone', async () => {
    expect((await ask('/health', 'penstock.example'))[0]).to.equal(200)
  })

  it('may name any address where other machines are let in, and the name that was configured', () => {
    const own = (host: string, listening: string) => isOwnHost(host, listening)
    expect(
      ['10.1.2.3:8080', '[2001:db8::1]:80', 'localhost'].map((host) => own(host, '0.0.0.0')),
    ).to.deep.equal([true, true, true])
    expect(
      ['rebound.example', '', '[', '10.1.2.3.example:80'].map((host) => own(host, '0.0.0.0')),
    ).to.deep.equal([false, false, false, false])
    expect([own('Build.lan:80', 'build.lan'), own('other.lan', 'build.lan')]).to.deep.equal([true, false])
  })

  it('tell this machine alone from others', () => {
    expect(['127.0.0.1', '127.1.2.3', '::1', 'localhost'].map(isLoopback)).to.deep.equal([
      true,
      true,
      true,
      true,
    ])
    expect(['0.0.0.0', '::', '10.0.0.1', '127.example', ''].map(isLoopback)).to.deep.equal([
      false,
      false,
      false,
      false,
      false,
    ])
  })
})
