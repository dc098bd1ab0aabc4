import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { parseCidr } from '../../internal/delivery/addresses.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import type { ResolvedAddress } from '../../internal/delivery/guard.ts'
import { eventually } from '../support/eventually.ts'
import { redirectTo, type Sink, startSink } from '../support/sink.ts'
import { batch, loopback, newClient, target } from './fixture.ts'

const blocked = {
  delivered: false,
  retryable: true,
  statusCode: 0,
  errorClass: 'blocked_destination',
} as const

describe('the guard of the connector', () => {
  let sink: Sink
  let clients: DeliveryClient[]
  let names: Map<string, string[] | Error>
  let lookups: string[]

  beforeEach(async () => {
    sink = await startSink()
    clients = []
    names = new Map()
    lookups = []
  })
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close(0)))
    await sink.close()
  })

  async function resolve(hostname: string): Promise<ResolvedAddress[]> {
    lookups.push(hostname)
    const found = names.get(hostname) ?? Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
    if (found instanceof Error) throw found
    return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  }

  function sendTo(host: string, options: Parameters<typeof newClient>[0] = {}) {
    const client = newClient({ resolve, ...options })
    clients.push(client)
    return client.send(target(sink.url('/', host)), 'k', batch)
  }

  it('refuses literal addresses in every spelling, without a packet', async () => {
    const hosts = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f.1',
      '017700000001',
      '127.0.0.1.',
      '0',
      '１２７.0.0.1',
    ]
    const wrapped = [
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::7f00:1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
    ]
    for (const host of [...hosts, ...wrapped, '169.254.169.254', '[fe80::1]', '10.0.0.1']) {
      expect(await sendTo(host, { allow: [] }), host).to.include(blocked)
    }
    expect([sink.acceptedConnections, lookups]).to.deep.equal([0, []])
  })

  it('refuses names that resolve to such addresses, and tells nobody which', async () => {
    for (const address of [
      '127.0.0.1',
      '::1',
      '::ffff:127.0.0.1',
      '10.0.0.1',
      '169.254.169.254',
      'fe80::1%lo',
      '127.1',
    ]) {
      names.set('sink.test', [address])
      const result = await sendTo('sink.test', { allow: [] })
      expect(result, address).to.include(blocked)
      expect(result.error).not.to.contain(address)
    }
    expect(await sendTo('localhost', { allow: [], resolve: undefined })).to.include(blocked)
    expect(sink.acceptedConnections).to.equal(0)
  })

  it('connects to the permitted ones among several addresses, and to nothing else', async () => {
    names.set('sink.test', ['127.0.0.2', '127.0.0.1', '10.0.0.1'])
    const allow = [parseCidr('127.0.0.1/32')!]
    expect(await sendTo('sink.test', { allow })).to.include({ delivered: true })
    expect(sink.requests()[0]?.headers.host).to.equal(`sink.test:${sink.port}`)
  })

  it('connects to the address it has judged, by one lookup a connection', async () => {
    names.set('sink.test', ['127.0.0.1'])
    const client = newClient({ resolve })
    clients.push(client)
    sink.otherwise({ headers: { connection: 'close' } })
    const send = () => client.send(target(sink.url('/', 'sink.test')), 'k', batch)
    expect(await send()).to.include({ delivered: true })
    expect(lookups).to.deep.equal(['sink.test'])
    names.set('sink.test', ['10.0.0.1'])
    expect(await send()).to.include(blocked)
    names.set('sink.test', ['127.0.0.1'])
    expect(await send()).to.include({ delivered: true })
    expect(sink.requests().length).to.equal(2)
  })

  it('does not follow a redirect to anywhere', async () => {
    sink.otherwise(redirectTo('http://169.254.169.254/latest/meta-data/'))
    expect(await sendTo('127.0.0.1')).to.include({
      delivered: false,
      statusCode: 302,
      errorClass: 'http_other',
    })
  })

  it('takes schemes other than http and https for blocked', async () => {
    const client = newClient()
    clients.push(client)
    for (const url of ['ftp://127.0.0.1/', 'file:///etc/passwd', 'unix:/tmp/x', 'nonsense']) {
      expect(await client.send(target(url), 'k', batch), url).to.include(blocked)
    }
  })

  it('lets the allow-list through', async () => {
    const allow = [parseCidr('127.0.0.0/8')!]
    for (const host of ['127.0.0.1', '127.1', '[::ffff:127.0.0.1]']) {
      expect(await sendTo(host, { allow }), host).to.include({ delivered: true })
    }
    expect(await sendTo('localhost', { allow, resolve: undefined })).to.include({ delivered: true })
  })

  it('calls a name that does not resolve a failure of dns', async () => {
    expect(await sendTo('nowhere.test')).to.include({
      errorClass: 'dns',
      error: 'the host name does not resolve (ENOTFOUND)',
      retryable: true,
      statusCode: 0,
    })
    names.set('later.test', Object.assign(new Error('again'), { code: 'EAI_AGAIN' }))
    expect(await sendTo('later.test')).to.include({ errorClass: 'dns' })
  })

  it('asks once for a name whose lookup hangs, which delays no other name and outlasts no deadline', async () => {
    let hanging = 0
    names.set('fine.test', ['127.0.0.1'])
    const client = newClient({
      allow: loopback,
      deadlineMs: 3_000,
      resolve: (hostname) => {
        if (hostname !== 'hang.test') return resolve(hostname)
        hanging++
        return new Promise(() => {})
      },
    })
    clients.push(client)
    const hung = [1, 2, 3].map(() => client.send(target(sink.url('/', 'hang.test')), 'k', batch))
    expect(await client.send(target(sink.url('/', 'fine.test')), 'k', batch)).to.include({ delivered: true })
    for (const result of await Promise.all(hung))
      expect(result).to.include({ errorClass: 'timeout', statusCode: 0 })
    expect(hanging).to.equal(1)
    await eventually(() => client.gauges().origins === 1)
  })
})
