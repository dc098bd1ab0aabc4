import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { parseCidr } from '../../internal/delivery/addresses.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import type { ResolvedAddress } from '../../internal/delivery/dns/addresses.ts'
import { LookupError, LookupWithheldError } from '../../internal/delivery/dns/failure.ts'
import type { Resolve } from '../../internal/delivery/guard.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import { redirectTo, type Sink, startSink } from '../support/sink.ts'
import { batch, newClient, newLookups, target } from './fixture.ts'

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
    const found = names.get(hostname) ?? new LookupError('ENOTFOUND')
    if (found instanceof Error) throw found
    return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  }

  const system = newLookups({})
  const systemNames: Resolve = (hostname, customerId) => system.resolve(hostname, customerId)

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

  it('refuses ports that are not permitted, for addresses and names, before any lookup', async () => {
    names.set('sink.test', ['127.0.0.1'])
    for (const host of ['127.0.0.1', 'sink.test'])
      expect(await sendTo(host, { ports: [443] }), host).to.include({
        errorClass: 'blocked_destination',
        error: `port ${sink.port} is not in PENSTOCK_DESTINATION_PORTS`,
      })
    expect([sink.acceptedConnections, lookups]).to.deep.equal([0, []])
    expect(await sendTo('sink.test', { ports: [443, sink.port] })).to.include({ delivered: true })
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
    expect(await sendTo('localhost', { allow: [], resolve: systemNames })).to.include(blocked)
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
    expect(await sendTo('localhost', { allow, resolve: systemNames })).to.include({ delivered: true })
  })

  it('calls a name that does not resolve a failure of dns', async () => {
    expect(await sendTo('nowhere.test')).to.include({
      errorClass: 'dns',
      error: 'the host name does not resolve (ENOTFOUND)',
      retryable: true,
      statusCode: 0,
    })
    names.set('later.test', new LookupError('ESERVFAIL'))
    expect(await sendTo('later.test')).to.include({ errorClass: 'dns' })
    names.set('silent.test', new LookupError('ETIMEOUT'))
    expect(await sendTo('silent.test')).to.include({
      errorClass: 'dns',
      error: 'the servers of the host name do not answer (ETIMEOUT)',
      retryable: true,
    })
  })

  it('looks a name up at the expense of the customer whose attempt needs the connection', async () => {
    const payers: string[] = []
    const client = newClient({
      resolve: (hostname, customerId) => {
        payers.push(customerId)
        return resolve(hostname)
      },
    })
    clients.push(client)
    names.set('sink.test', ['127.0.0.1'])
    const delivery = target(sink.url('/', 'sink.test'))
    const attemptOf = (customerId: string) => {
      const record = { uid: `buffer of ${customerId}`, buffer: { customerId, delivery } } as BufferRecord
      return client.attempt({ record: () => record, key: 'k', body: batch })
    }
    for (const customerId of ['acme', 'other'])
      expect(await attemptOf(customerId)).to.include({ delivered: true })
    expect(payers, 'the other one found an open connection').to.deep.equal(['acme'])
  })

  it('withdraws the attempt when nothing was learnt of the name', async () => {
    names.set('sink.test', new LookupWithheldError('no name server answers'))
    expect(await sendTo('sink.test')).to.include({
      unsent: true,
      errorClass: 'dns',
      error: 'nothing was sent: no name server answers',
      retryable: true,
      durationMs: 0,
    })
  })
})
