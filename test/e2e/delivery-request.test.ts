/** The request that a destination gets (docs/reference/buffers.md, "Deliveries"), byte for byte. */
import { createHmac } from 'node:crypto'
import { Ajv, type AnySchema } from 'ajv'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { openApiDocument } from '../../internal/http/openapi/document.ts'
import type { Accepted } from '../support/api.ts'
import { judgedDocument } from '../support/judged.ts'
import type { SinkRequest } from '../support/sink.ts'
import { batchOf, type Channel, harness, NEVER_DUE, SOON } from './harness.ts'

/** JSON texts that a parser and a printer would not give back as they were. */
const UNUSUAL = [
  '{"group":"a","n":1.0}',
  '{"group":"a","n":1e400,"m":-0,"big":12345678901234567890.10}',
  '{"group":"a","twice":1,"twice":2,"__proto__":{"x":1}}',
  '{ "group" : "a" ,\n\t"spaced" : [ 1 , 2 ] }\r\n ',
  '{"group":"a","escaped":"\\u00e9\\/\\ud83d\\ude00\\u0000","plain":"é/😀"}',
  '{"group":"a","lone":"\\ud800"}',
  '{"group":"a","empty":{},"none":null,"list":[[],""]}',
]

describe('a delivery', function () {
  this.timeout(120_000)
  const on = harness()

  it('carries exactly the documented body, with every payload as its sender wrote it', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: UNUSUAL.length } })
    const since = Date.now()
    const answers = await channel.sendAll(UNUSUAL)
    const [request] = await channel.untilRequests(1)
    const { svc, window, items } = batchOf(request!)
    expect(items.map(({ messageId }) => messageId)).to.deep.equal(answers.map(({ messageId }) => messageId))
    for (const { receivedAt } of items) expect(receivedAt).to.be.within(since, Date.now())
    expect(svc.groupHash).to.match(/^[A-Za-z0-9_-]{22}$/)
    expect(window.firstItemAt).to.equal(items[0]!.receivedAt)
    expect(window.lastActivityAt).to.equal(items.at(-1)!.receivedAt)
    expect(request!.body.toString()).to.equal(
      `{"svc":{"customerId":"e2e","projectId":"${channel.projectId}","bufferId":"${channel.bufferId}",` +
        `"groupKey":"a","groupHash":"${svc.groupHash}","segment":0},` +
        `"window":{"firstItemAt":${window.firstItemAt},"lastActivityAt":${window.lastActivityAt},"itemsCount":7},` +
        `"items":[${items
          .map(
            ({ messageId, receivedAt }, index) =>
              `{"messageId":"${messageId}","receivedAt":${receivedAt},"payload":${UNUSUAL[index]}}`,
          )
          .join(',')}]}`,
    )
  })

  it('is a POST of JSON under the default idempotency header, and unsigned', async () => {
    const { request, hash } = await deliverOne(await on.channel({ batch: SOON }))
    expect(request.method).to.equal('POST')
    expect(request.headers['content-type']).to.equal('application/json')
    expect(request.headers['content-length']).to.equal(`${request.body.length}`)
    expect(request.headers['x-idempotency-key']).to.match(new RegExp(`^grp:${hash}:v[1-9][0-9]*$`))
    expect(request.headers).not.to.have.property('x-svc-signature')
  })

  it('is the callback of the OpenAPI document', async () => {
    const channel = await on.channel({
      batch: SOON,
      delivery: { signing: { type: 'hmac-sha256', secret: 's', header: 'x-svc-signature' } },
    })
    const { request } = await deliverOne(channel)
    const { parameters } = callbackOfCreation()
    const documented = parameters.map(({ name }) => name)
    const ofHttp = ['host', 'connection', 'content-type', 'content-length']
    expect(Object.keys(request.headers).filter((name) => !ofHttp.includes(name))).to.have.members(documented)
    const ajv = new Ajv({ strict: false, formats: { uri: true, 'date-time': true } })
    ajv.addSchema(judgedDocument() as AnySchema, 'openapi.json')
    expect(
      ajv.validate('openapi.json#/components/schemas/DeliveryBatch', request.json()),
      ajv.errorsText(),
    ).to.equal(true)
  })

  it('is a PUT with every configured header, under its own idempotency header and signature', async () => {
    const channel = await on.channel({
      batch: SOON,
      delivery: {
        method: 'PUT',
        headers: { 'X-Tenant': 'ten ant', authorization: 'Bearer abc', 'X-Empty': '' },
        idempotencyHeader: 'X-Batch-Key',
        signing: { type: 'hmac-sha256', secret: 'shhh é', header: 'X-Hub-Signature' },
      },
    })
    const { request, hash } = await deliverOne(channel)
    expect(request.method).to.equal('PUT')
    expect(request.headers).to.include({ 'x-tenant': 'ten ant', authorization: 'Bearer abc', 'x-empty': '' })
    expect(request.headers['x-batch-key']).to.match(new RegExp(`^grp:${hash}:v[1-9][0-9]*$`))
    expect(request.headers).not.to.have.property('x-idempotency-key')
    expect(request.headers['x-hub-signature']).to.equal(signatureOf('shhh é', request.body))
  })

  it('is signed under x-svc-signature by default', async () => {
    const channel = await on.channel({
      batch: SOON,
      delivery: { signing: { type: 'hmac-sha256', secret: 's' } },
    })
    const { request } = await deliverOne(channel)
    expect(request.headers['x-svc-signature']).to.equal(signatureOf('s', request.body))
  })

  it('of every batch of a group has a key of its own, with a version that grows', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 1 } })
    await channel.sendAll([1, 2, 3, 4, 5].map((n) => ({ group: 'a', n })))
    const keys = (await channel.untilRequests(5)).map(({ headers }) => String(headers['x-idempotency-key']))
    const versions = keys.map((key) => Number(/:v(\d+)$/.exec(key)?.[1]))
    expect(versions).to.deep.equal([...new Set(versions)].sort((a, b) => a - b))
    expect(new Set(keys.map((key) => key.replace(/:v\d+$/, ''))).size).to.equal(1)
  })

  it('names each item as its sender did: by messageId, by header, or by a UUID', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 5 } })
    const answers: Accepted[] = []
    answers.push(
      await channel.send({ group: 'a', messageId: 'in body é"' }, { 'x-idempotency-key': 'in header' }),
    )
    answers.push(await channel.send({ group: 'a' }, { 'x-idempotency-key': 'in header' }))
    answers.push(await channel.send('{"group":"a","messageId":1.50}'))
    answers.push(await channel.send({ group: 'a', messageId: { no: 'id' } }))
    answers.push(await channel.send({ group: 'a', messageId: '' }))
    const [batch] = await channel.untilBatches(1)
    const ids = batch!.items.map(({ messageId }) => messageId)
    expect(ids.slice(0, 3)).to.deep.equal(['in body é"', 'in header', '1.50'])
    for (const id of ids.slice(3)) expect(id).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(answers.map(({ messageId }) => messageId)).to.deep.equal(ids)
    for (const { itemId } of answers) expect(itemId).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  })

  it('carries payloads that are no object, and large ones', async () => {
    const channel = await on.channel({
      groupKey: { mode: 'header', fallbackHeader: 'x-group' },
      batch: { ...NEVER_DUE, maxItems: 5, maxBytes: 16_000_000 },
    })
    const payloads = ['null', '"text"', '[1,2]', '0.10', JSON.stringify({ fill: 'é'.repeat(400_000) })]
    for (const payload of payloads) await channel.send(payload, { 'x-group': 'g' })
    const [request] = await channel.untilRequests(1)
    const { items } = batchOf(request!)
    const text = request!.body.toString()
    const elements = items.map(
      ({ messageId, receivedAt }, index) =>
        `{"messageId":"${messageId}","receivedAt":${receivedAt},"payload":${payloads[index]}}`,
    )
    expect(text.endsWith(`"items":[${elements.join(',')}]}`)).to.equal(true)
  })
})

async function deliverOne(channel: Channel): Promise<{ request: SinkRequest; hash: string }> {
  await channel.send({ group: 'a' })
  const [request] = await channel.untilRequests(1)
  return { request: request!, hash: batchOf(request!).svc.groupHash }
}

function signatureOf(secret: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex')
}

function callbackOfCreation(): { parameters: readonly { name: string }[] } {
  const { paths } = openApiDocument() as { paths: Record<string, { post: Record<string, unknown> }> }
  const { callbacks } = paths['/v1/admin/buffers']!.post as {
    callbacks: { delivery: Record<string, { post: { parameters: { name: string }[] } }> }
  }
  return Object.values(callbacks.delivery)[0]!.post
}
