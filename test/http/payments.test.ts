/** Notifications of a payment provider, from its request to our rows. */
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { createNotifications } from '../../internal/billing/notifications.ts'
import { BodyShares } from '../../internal/http/body-shares.ts'
import { MAX_NOTIFICATION_BYTES, paymentRoute } from '../../internal/http/payments.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { ProviderHarness } from '../billing/provider-harness.ts'
import { eventually } from '../support/eventually.ts'
import { RawClient } from './raw-client.ts'
import { startService, type TestService } from './service.ts'

describe('POST /v1/payments/<provider>', () => {
  const on = new ProviderHarness()
  const refused: string[] = []
  const bodies = new BodyShares(4 * MAX_NOTIFICATION_BYTES, systemClock())
  let service: TestService

  before(async () => {
    await on.open()
    const clock = systemClock()
    service = await startService({
      others: [
        async (ctx, next) => {
          const { provider } = on
          const notifications = createNotifications({ provider, events: on.events(), clock })
          const options = { name: 'recording', notifications, clock, bodies }
          return paymentRoute({ ...options, onRefused: (reason) => refused.push(reason) })(ctx, next)
        },
      ],
    })
  })
  beforeEach(async () => {
    refused.length = 0
    await on.begin()
  })
  afterEach(() => {
    expect(service.told.failed).to.deep.equal([])
    const room = bodies.of('probe')
    expect(room.has(4 * MAX_NOTIFICATION_BYTES), 'all bytes are given back').to.equal(true)
  })
  after(async () => {
    await service.stop()
    await on.db.end()
  })

  async function post(body: unknown, headers: Record<string, string> = { 'recording-signature': 'good' }) {
    const answer = await fetch(`${service.url}/v1/payments/recording`, {
      method: 'POST',
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: answer.status, json: await answer.json(), headers: answer.headers }
  }

  it('reads what it names, and says so', async () => {
    const { status, json } = await post(on.set(on.subscription(), on.invoice()))
    expect([status, json]).to.deep.equal([200, { received: true }])
    expect((await on.account()).credits).to.equal(110)
  })

  it('acknowledges what is not of this installation', async () => {
    expect((await post([{ kind: 'pack', id: 'none' }])).status).to.equal(200)
    expect((await post([])).status).to.equal(200)
    expect((await post(on.set(on.pack({ providerCustomerId: 'cus-none' })))).status).to.equal(200)
    expect((await on.account()).credits).to.equal(10)
  })

  it('lets the provider tell again what cannot be applied yet, and all else with it', async () => {
    const { status, json, headers } = await post([...on.set(on.invoice()), ...on.set(on.pack())])
    expect([status, json]).to.deep.equal([
      503,
      { error: 'Notification cannot be applied yet, tell it again' },
    ])
    expect(headers.get('retry-after')).to.equal('60')
    expect((await on.account()).credits, 'the pack').to.equal(60)
  })

  it('answers 503 while the provider cannot be read', async () => {
    const references = on.set(on.subscription())
    on.provider.failing = true
    const { status, json } = await post(references)
    expect([status, json]).to.deep.equal([503, { error: 'Payment provider did not agree, try again' }])
  })

  it('refuses what is not the provider’s, with one line', async () => {
    const before = await on.everything()
    const references = on.set(on.subscription())
    for (const headers of [{}, { 'recording-signature': 'bad' }] as Record<string, string>[]) {
      const { status, json } = await post(references, headers)
      expect([status, json]).to.deep.equal([400, { error: 'Notification is not valid' }])
    }
    expect(refused).to.deep.equal(['the signature is wrong', 'the signature is wrong'])
    expect(await on.everything()).to.equal(before)
  })

  it('takes a body up to a megabyte', async () => {
    const references = on.set(on.subscription())
    const padded = (bytes: number) => JSON.stringify(references).padEnd(bytes, ' ')
    expect((await post(padded(MAX_NOTIFICATION_BYTES))).status).to.equal(200)
    const large = await post(padded(MAX_NOTIFICATION_BYTES + 1))
    expect([large.status, large.json]).to.deep.equal([413, { error: 'Request body is too large' }])
    const encoded = await post('x', { 'recording-signature': 'good', 'content-encoding': 'gzip' })
    expect(encoded.status).to.equal(415)
  })

  it('leaves room to the provider, whatever others send from one address', async () => {
    const half = MAX_NOTIFICATION_BYTES / 2
    const head = `POST /v1/payments/recording HTTP/1.1\r\nHost: x\r\nContent-Length: ${half}\r\n\r\n`
    const clients = await Promise.all([1, 2, 3, 4].map(() => RawClient.open(service.port)))
    for (const client of clients) client.send(head + 'x'.repeat(half - 1))
    const left = 2 * MAX_NOTIFICATION_BYTES + 4
    await eventually(() => !bodies.of('probe').has(left + 1))
    expect((await post('{}')).status).to.equal(503)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const url = `${service.url}/v1/payments/recording`
      const sent = request(url, { method: 'POST', localAddress: '127.0.0.2' }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      sent.on('error', reject)
      sent.end('{}')
    })
    expect(status).to.equal(400)
    for (const client of clients) client.close()
    await eventually(() => bodies.of('probe').has(4 * MAX_NOTIFICATION_BYTES))
  })

  it('is the only method, and no route of another provider', async () => {
    const url = `${service.url}/v1/payments/recording`
    const get = await fetch(url)
    expect([get.status, get.headers.get('allow')]).to.deep.equal([405, 'POST, OPTIONS'])
    for (const name of ['stripe', 'recording/', 'RECORDING', randomUUID()]) {
      const other = await fetch(`${service.url}/v1/payments/${name}`, { method: 'POST', body: '[]' })
      expect(other.status, name).to.equal(404)
    }
  })
})
