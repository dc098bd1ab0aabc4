/** What the local payment provider refuses. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { call } from './caller.ts'
import { FORM, LocalPaymentsHarness } from './local-payments-harness.ts'
import { RawClient } from './raw-client.ts'

describe('/local/payments, asked badly,', () => {
  let local: LocalPaymentsHarness

  before(async () => {
    local = await LocalPaymentsHarness.start()
  })
  after(() => local.stop())
  beforeEach(() => local.reset())

  describe('changes nothing, and names the field,', () => {
    const wrong = [null, '1', 1.5, {}, [], true, '', 'x'.repeat(1_000)]

    async function refuses(path: string, good: Record<string, unknown>, fields: Record<string, unknown[]>) {
      const before = await local.document()
      const refusals: [unknown, string][] = Object.entries(fields).flatMap(([field, values]) =>
        values.map((value): [unknown, string] => [{ ...good, [field]: value }, field]),
      )
      refusals.push([{ ...good, more: 1 }, 'more'])
      for (const each of [[], 7, 'text', null]) refusals.push([JSON.stringify(each), 'body'])
      refusals.push(['{', 'Request body'])
      refusals.push([`{"__proto__":1}`, '__proto__'])
      for (const [body, field] of refusals) {
        const answer = await local.post(path, body)
        const { error } = answer.json as { error: string }
        expect(answer.status, JSON.stringify(body).slice(0, 100)).to.equal(400)
        expect(error).to.include(`${field} `)
        expect(error.length).to.be.lessThan(600)
      }
      expect(await local.document()).to.equal(before)
    }

    it('of a checkout', async () => {
      await refuses(
        await local.open({ planId: 'starter' }),
        { outcome: 'pays' },
        { outcome: [undefined, ...wrong], amountInCents: [...wrong, -1, 1_000_000_001, 2 ** 60] },
      )
    })

    it('of an advance', async () => {
      await local.bought()
      await refuses('/local/payments/advance', { days: 1 }, { days: [undefined, ...wrong, 0, -1, 401] })
    })

    it('of a subscription', async () => {
      const { subscription } = await local.bought()
      const more = { planId: ['growth'], outcome: ['pays'] }
      await refuses(subscription, { action: 'cancel' }, { action: [undefined, ...wrong], ...more })
      const planIds = [undefined, ...wrong, 'nothing', '__proto__']
      const change = { action: 'change-plan', planId: 'growth' }
      await refuses(subscription, change, { planId: planIds, outcome: [...wrong, 'abandons'] })
    })

    it('of a refund and a dispute', async () => {
      const { payment } = await local.bought()
      await refuses(`${payment}/refund`, {}, { amountInCents: [...wrong, 0, -1, 4901] })
      await refuses(`${payment}/dispute`, { outcome: 'lost' }, { outcome: [undefined, ...wrong] })
    })

    it('of a repetition', async () => {
      await local.bought()
      const [{ eventId }] = local.told.bodies
      await refuses(`/local/payments/events/${eventId}/repeat`, {}, {})
    })

    it('of a list', async () => {
      for (const query of ['', '?customerId=', '?customerId=a%20b', '?customerId=a&customerId=b']) {
        const answer = await local.get(`/local/payments${query}`)
        expect([answer.status, JSON.stringify(answer.json)], query).to.satisfy(
          ([status, text]: [number, string]) => status === 400 && text.includes('customerId '),
        )
      }
    })

    it('of a form', async () => {
      const path = await local.open({ planId: 'starter' })
      for (const [body, error] of [
        ['outcome=pays&outcome=fails', 'outcome stands there twice'],
        ['outcome=pays&amountInCents=1e3', 'amountInCents must be an integer'],
        ['amountInCents=1', 'outcome is required'],
        ['outcome=pays&__proto__=1', '__proto__ is not a known field'],
      ] as const) {
        const answer = await local.post(path, body, { 'content-type': FORM })
        expect([answer.status, answer.text.includes(error)], body).to.deep.equal([400, true])
      }
      expect((await local.get(path)).json).to.include({ state: 'open' })
    })
  })

  it('knows no other paths, ids and methods', async () => {
    for (const path of [
      '/x',
      '/checkouts',
      '/checkouts/',
      '/checkouts/cs_none',
      '/checkouts/%2e%2e',
      '/a/b/c',
    ]) {
      expect((await local.get(`/local/payments${path}`)).status, path).to.equal(404)
    }
    for (const [path, body] of [
      ['/checkouts/cs_none', { outcome: 'pays' }],
      ['/subscriptions/sub_none', { action: 'cancel' }],
      ['/subscriptions/__proto__', { action: 'cancel' }],
      ['/in_none/refund', {}],
      ['/in_none/dispute', { outcome: 'lost' }],
      ['/events/evt_none/repeat', {}],
    ] as const) {
      const answer = await local.post(`/local/payments${path}`, body)
      expect(answer.status, path).to.equal(404)
      expect((answer.json as { error: string }).error).to.match(/ not found$/)
    }
    const other = await call(`${local.listener.url}/local/payments/advance`)
    expect([other.status, other.headers.get('allow')]).to.deep.equal([405, 'POST'])
    const removed = await call(`${local.listener.url}/local/payments/checkouts/x`, { method: 'DELETE' })
    expect([removed.status, removed.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD, POST'])
    expect((await local.get('/local/paymentsx')).status).to.equal(404)
  })

  it('refuses bodies that are too large or encoded', async () => {
    const large = await local.post('/local/payments/advance', ' '.repeat(16 * 1024 + 1))
    expect([large.status, large.json]).to.deep.equal([413, { error: 'Request body is too large' }])
    const encoded = await local.post('/local/payments/advance', '{}', { 'content-encoding': 'gzip' })
    expect(encoded.status).to.equal(415)
    expect(
      (await local.post('/local/payments/advance', `{"days":1${' '.repeat(16 * 1024 - 10)}}`)).status,
    ).to.equal(200)
  })

  describe('is for this machine', () => {
    async function ask(lines: string[], body = '{"days":1}'): Promise<number> {
      const client = await RawClient.open(local.listener.port)
      const head = [...lines, `Content-Length: ${body.length}`].join('\r\n')
      client.send(`${head}\r\n\r\n${body}`)
      const { status } = await client.answer()
      client.socket.destroy()
      return status
    }
    const advance = 'POST /local/payments/advance HTTP/1.1'

    it('and for no name that others make resolve to it', async () => {
      for (const host of ['127.0.0.1', `localhost:${local.listener.port}`]) {
        expect(await ask([advance, `Host: ${host}`]), host).to.equal(200)
      }
      const before = await local.document()
      for (const host of ['rebound.example', '127.0.0.1.example', '10.1.2.3']) {
        expect(await ask([advance, `Host: ${host}`]), host).to.equal(400)
        expect(await ask(['GET /local/payments/events HTTP/1.1', `Host: ${host}`], ''), host).to.equal(400)
      }
      expect(
        await ask(['POST http://localhost/local/payments/advance HTTP/1.1', 'Host: localhost']),
      ).to.equal(400)
      expect(await local.document()).to.equal(before)
    })

    it('and for no page of another origin', async () => {
      const own = `127.0.0.1:${local.listener.port}`
      const head = [advance, `Host: ${own}`]
      expect(await ask([...head, `Origin: http://${own}`, 'Sec-Fetch-Site: same-origin'])).to.equal(200)
      const before = await local.document()
      for (const foreign of [
        'Origin: https://evil.example',
        'Origin: null',
        'Origin: http://127.0.0.1:1',
        `Origin: http://localhost:${local.listener.port}`,
        'Sec-Fetch-Site: cross-site',
        'Sec-Fetch-Site: same-site',
      ]) {
        expect(await ask([...head, foreign]), foreign).to.equal(403)
        expect(await ask([...head, foreign, `Content-Type: ${FORM}`], 'days=1'), foreign).to.equal(403)
      }
      expect(await local.document()).to.equal(before)
    })
  })
})
