/** Webhooks of providers: their signatures, their ids, and keys that must come along. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { signatureSchemes } from '../../internal/domain/signatures/schemes.ts'
import { OTHER_SECRET, SOURCE_SECRET, signedAs } from '../support/source-signatures.ts'
import { ingestHarnessOfSuite } from './ingest-harness.ts'
import { RawClient } from './raw-client.ts'

const BODY = '{ "customer":"c" ,"id":"evt_1","n":1.0}\n'
const STALE = 'Time stamp of the signature is too far from now'
const NO_KEY = 'This buffer takes only webhooks with an API key in X-API-Key'

describe('webhooks that are signed as a provider signs them', () => {
  const harness = ingestHarnessOfSuite()
  before(async () => {
    for (const scheme of signatureSchemes) {
      await harness.addBuffer(`from-${scheme}`, {
        sourceVerification: { enabled: true, scheme, signingSecret: SOURCE_SECRET },
      })
    }
  })

  for (const scheme of signatureSchemes) {
    const path = `shop/from-${scheme}`
    const sent = (headers: Record<string, string>, body = BODY) => harness.ingest(body, headers, path)

    it(`are taken over the raw bytes, and refused without a good signature: ${scheme}`, async () => {
      expect((await sent(signedAs(scheme, BODY))).status).to.equal(202)
      expect(Buffer.from(harness.service.inbox.items[0]!.payload).toString()).to.equal(BODY)
      await harness.startOver()
      await harness.refuses(sent({}), 401, 'Missing signature header')
      const others = [
        sent(signedAs(scheme, JSON.stringify(JSON.parse(BODY)))),
        sent(signedAs(scheme, BODY, { secret: OTHER_SECRET })),
        sent(signedAs(scheme, BODY), `${BODY} `),
      ]
      for (const other of others) await harness.refuses(other, 401, 'Invalid signature')
    })

    it(`are taken by both secrets while a sender changes its own: ${scheme}`, async () => {
      const changed = await harness.admin.patch(`/v1/admin/buffers/from-${scheme}`, {
        sourceVerification: { signingSecret: OTHER_SECRET, previousSecret: SOURCE_SECRET },
      })
      expect(changed.status, changed.text).to.equal(200)
      for (const secret of [SOURCE_SECRET, OTHER_SECRET])
        expect((await sent(signedAs(scheme, BODY, { secret }))).status).to.equal(202)
      await harness.startOver()
      const removed = await harness.admin.patch(`/v1/admin/buffers/from-${scheme}`, {
        sourceVerification: { previousSecret: null },
      })
      expect(removed.text).not.to.include('previousSecret')
      await harness.refuses(sent(signedAs(scheme, BODY)), 401, 'Invalid signature')
      expect((await sent(signedAs(scheme, BODY, { secret: OTHER_SECRET }))).status).to.equal(202)
      await harness.admin.patch(`/v1/admin/buffers/from-${scheme}`, {
        sourceVerification: { signingSecret: SOURCE_SECRET },
      })
    })
  }

  for (const scheme of ['stripe', 'slack', 'standard-webhooks'] as const) {
    it(`are refused when they are too old or from the future: ${scheme}`, async () => {
      const sent = (later: number) =>
        harness.ingest(BODY, signedAs(scheme, BODY, { later }), `shop/from-${scheme}`)
      for (const later of [-400, 400]) await harness.refuses(sent(later), 401, STALE)
      for (const later of [-200, 200]) expect((await sent(later)).status).to.equal(202)
      const path = `/v1/admin/buffers/from-${scheme}`
      await harness.admin.patch(path, { sourceVerification: { toleranceSeconds: 3600 } })
      for (const later of [-400, 400]) expect((await sent(later)).status).to.equal(202)
      await harness.admin.patch(path, { sourceVerification: { toleranceSeconds: null } })
    })
  }

  it('are read from another header, where the buffer names one', async () => {
    await harness.addBuffer('from-svix', {
      sourceVerification: {
        enabled: true,
        scheme: 'standard-webhooks',
        signingSecret: SOURCE_SECRET,
        signatureHeader: 'svix-signature',
      },
    })
    const headers = Object.entries(signedAs('standard-webhooks', BODY))
    const svix = Object.fromEntries(headers.map(([name, value]) => [name.replace('webhook', 'svix'), value]))
    expect((await harness.ingest(BODY, svix, 'shop/from-svix')).status).to.equal(202)
    await harness.startOver()
    const plain = harness.ingest(BODY, signedAs('standard-webhooks', BODY), 'shop/from-svix')
    await harness.refuses(plain, 401, 'Missing signature header')
  })

  it('need a secret that the scheme can use', async () => {
    const answer = await harness.admin.patch('/v1/admin/buffers/from-standard-webhooks', {
      sourceVerification: { previousSecret: 'no base64' },
    })
    expect([answer.status, answer.json]).to.deep.equal([
      400,
      {
        error:
          'sourceVerification.previousSecret must be base64, with or without whsec_ in front, for the scheme standard-webhooks',
      },
    ])
  })
})

describe('webhooks that a provider sends again', () => {
  const harness = ingestHarnessOfSuite()

  async function sentTwice(bufferId: string, first: Sent, second: Sent): Promise<unknown[]> {
    const answers = []
    for (const [body, headers] of [first, second])
      answers.push((await harness.ingest(body, headers, `shop/${bufferId}`)).json)
    return answers
  }
  type Sent = [body: string, headers: Record<string, string>]

  it('are duplicates by the id of their body', async () => {
    await harness.addBuffer('by-path', { messageId: { path: '$.id' } })
    const [first, second] = await sentTwice(
      'by-path',
      ['{"customer":"c","id":"evt_1"}', {}],
      ['{"customer":"c","id":"evt_1","again":true,"messageId":"m"}', { 'x-idempotency-key': 'k' }],
    )
    expect(first).to.include({ messageId: 'evt_1' })
    expect(second).to.deep.equal({ ...(first as object), duplicate: true })
  })

  it('are duplicates by the header of their provider, and not without it', async () => {
    await harness.addBuffer('by-id-header', { messageId: { header: 'X-Shopify-Webhook-Id' } })
    const body = '{"customer":"c","messageId":"m"}'
    const id = { 'X-Shopify-Webhook-Id': 'b54557e4', 'x-idempotency-key': 'k' }
    const [first, second] = await sentTwice('by-id-header', [body, id], [body, id])
    expect(first).to.include({ messageId: 'b54557e4' })
    expect(second).to.deep.equal({ ...(first as object), duplicate: true })
    const [third, fourth] = await sentTwice('by-id-header', [body, {}], [body, id])
    expect(third).to.include({ messageId: 'm' }).and.not.have.property('duplicate')
    expect(fourth).to.deep.equal(second)
  })

  it('are duplicates of what had the same id from another place', async () => {
    await harness.addBuffer('by-both', { messageId: { path: '$.event.id', header: 'X-Event-Id' } })
    const [first, second] = await sentTwice(
      'by-both',
      ['{"customer":"c","event":{"id":"e"}}', { 'x-event-id': 'other' }],
      ['{"customer":"c"}', { 'x-event-id': 'e' }],
    )
    expect(second).to.deep.equal({ ...(first as object), duplicate: true })
  })

  it('are two items where the buffer does not say where the id stands', async () => {
    const body = '{"customer":"c","id":"evt_1"}'
    const [first, second] = await sentTwice('orders', [body, {}], [body, {}])
    expect(second).not.to.have.property('duplicate')
    expect(second).not.to.deep.equal(first)
  })

  it('are refused with an id that is too long, and told where it stands', async () => {
    const body = JSON.stringify({ customer: 'c', id: 'i'.repeat(513) })
    const refused = harness.ingest(body, {}, 'shop/by-path')
    await harness.refuses(refused, 400, 'id must be at most 512 bytes')
  })
})

describe('a buffer that requires an API key', () => {
  const harness = ingestHarnessOfSuite()
  before(() => harness.addBuffer('keyed', { requireApiKey: true }))
  const path = 'shop/keyed'
  const body = '{"customer":"c"}'

  it('takes keys that are good', async () => {
    const key = { 'x-api-key': harness.ownerKey }
    expect((await harness.ingest(body, key, path)).status).to.equal(202)
  })

  it('refuses a webhook without one, and with one that is none', async () => {
    await harness.refuses(harness.ingest(body, {}, path), 401, NO_KEY)
    await harness.refuses(harness.ingest(body, { 'x-api-key': '' }, path), 401, 'Unauthorized')
    await harness.refuses(harness.ingest(body, { 'x-api-key': 'svk_no' }, path), 401, 'Unauthorized')
    const foreign = await harness.service.ownerKey('another')
    await harness.refuses(harness.ingest(body, { 'x-api-key': foreign }, path), 401, NO_KEY)
    const { json } = await harness.ingest(body, {}, path)
    expect(json).to.deep.equal({ error: NO_KEY })
  })

  it('tells nothing of its project or its state to a sender without a good key', async () => {
    const foreign = await harness.service.ownerKey('another')
    await harness.admin.patch('/v1/admin/buffers/keyed', { enabled: false })
    for (const headers of [{}, { 'x-api-key': foreign }] as Record<string, string>[])
      for (const place of [path, 'elsewhere/keyed'])
        await harness.refuses(harness.ingest(body, headers, place), 401, NO_KEY)
    await harness.refuses(
      harness.ingest(body, { 'x-api-key': 'svk_no' }, 'elsewhere/keyed'),
      401,
      'Unauthorized',
    )
    await harness.admin.patch('/v1/admin/buffers/keyed', { enabled: true })
  })

  it('refuses before it reads the body', async () => {
    const client = await RawClient.open(Number(new URL(harness.service.url).port))
    const head = `POST /v1/ingest/${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\nExpect: 100-continue\r\n\r\n`
    client.send(head)
    const answer = await client.answer()
    expect([answer.status, client.interim, JSON.parse(answer.body)]).to.deep.equal([
      401,
      0,
      { error: NO_KEY },
    ])
    client.socket.destroy()
  })

  it('tells nothing of itself to who has none: not whether it is enabled', async () => {
    const disabled = await harness.admin.patch('/v1/admin/buffers/keyed', { enabled: false })
    expect(disabled.status).to.equal(200)
    await harness.refuses(harness.ingest(body, {}, path), 401, NO_KEY)
    const key = { 'x-api-key': harness.ownerKey }
    await harness.refuses(harness.ingest(body, key, path), 400, 'Buffer is disabled')
    await harness.admin.patch('/v1/admin/buffers/keyed', { enabled: true })
  })

  it('takes all again once it requires none', async () => {
    const { text, status } = await harness.admin.patch('/v1/admin/buffers/keyed', { requireApiKey: null })
    expect([status, text.includes('requireApiKey')]).to.deep.equal([200, false])
    expect((await harness.ingest(body, {}, path)).status).to.equal(202)
  })
})
