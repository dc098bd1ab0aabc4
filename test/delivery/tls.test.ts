import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { batch, newClient, target } from './fixture.ts'

const pem = (name: string) =>
  readFileSync(new URL(`../support/certificates/${name}.pem`, import.meta.url), 'utf8')

/** The sink's certificate is for sink.test and 127.0.0.1, from a root of its own (both until 2126). */
describe('deliveries over TLS', () => {
  let sink: Sink
  let client: DeliveryClient

  before(async () => {
    sink = await startSink({ tls: { key: pem('sink.key'), cert: pem('sink.cert') } })
  })
  after(() => sink.close())
  afterEach(() => client.close(0))

  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  const send = (url: string) => client.send(target(url), 'k', batch)
  const failed = { delivered: false, retryable: true, statusCode: 0, errorClass: 'tls' } as const

  it('name the host, verify it, and keep the connection', async () => {
    client = newClient({ resolve, roots: pem('roots') })
    for (let i = 0; i < 3; i++) {
      expect(await send(sink.url('/', 'sink.test'))).to.include({ delivered: true })
    }
    expect(sink.requests().map((request) => request.servername)).to.deep.equal(Array(3).fill('sink.test'))
    expect(sink.acceptedConnections).to.equal(1)
    expect(await send(sink.url('/', 'sink.test.'))).to.include({ delivered: true })
    expect(sink.requests()[3]?.servername).to.equal('sink.test')
  })

  it('verify a literal address without naming it', async () => {
    sink.clear()
    client = newClient({ roots: pem('roots') })
    expect(await send(sink.url())).to.include({ delivered: true })
    expect(sink.requests()[0]?.servername).to.equal(false)
  })

  it('fail for another name, an unknown root and a server without TLS', async () => {
    sink.clear()
    client = newClient({ resolve, roots: pem('roots') })
    const wrong = await send(sink.url('/', 'other.test'))
    expect(wrong).to.include({ ...failed, error: 'TLS failed (ERR_TLS_CERT_ALTNAME_INVALID)' })
    await client.close(0)
    client = newClient({ resolve })
    expect(await send(sink.url('/', 'sink.test'))).to.include(failed)
    const plain = await startSink()
    expect(await send(plain.url().replace('http:', 'https:'))).to.include(failed)
    await plain.close()
    expect(sink.requests()).to.deep.equal([])
    await sink.waitFor((_, open) => open === 0)
  })

  it('are refused for blocked addresses before the handshake', async () => {
    client = newClient({ resolve, roots: pem('roots'), allow: [] })
    const accepted = sink.acceptedConnections
    for (const url of [sink.url(), sink.url('/', 'sink.test')]) {
      expect(await send(url)).to.include({ errorClass: 'blocked_destination' })
    }
    expect(sink.acceptedConnections).to.equal(accepted)
  })
})
