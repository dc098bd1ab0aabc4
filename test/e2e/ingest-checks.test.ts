/** Who may ingest, and how a request is grouped (docs/reference/api.md, "Ingest"). */
import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Answer } from '../support/api.ts'
import { onceKnown } from '../support/fronts.ts'
import { freshPayer } from '../support/shared-installation.ts'
import { harness, NEVER_DUE } from './harness.ts'

describe('ingest with an X-API-Key', function () {
  this.timeout(120_000)
  const on = harness()

  it('takes a key of the account, of any role', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    for (const role of ['viewer', 'member', 'admin', 'owner']) {
      const { secret, keyId } = await on.api.createKey({ role })
      expect((await channel.ingest({ group: 'a' }, { 'x-api-key': secret })).status, role).to.equal(202)
      await on.api.expect(204, 'DELETE', `/v1/admin/api-keys/${keyId}`)
    }
  })

  it('refuses a key that is unknown, malformed, empty or revoked, at once', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const { secret, keyId } = await on.api.createKey()
    expect((await channel.ingest({ group: 'a' }, { 'x-api-key': secret })).status).to.equal(202)
    await on.api.expect(204, 'DELETE', `/v1/admin/api-keys/${keyId}`)
    await onceKnown(async () =>
      expectRefused(await channel.ingest({ group: 'a' }, { 'x-api-key': secret }), 401, 'Unauthorized'),
    )
    for (const key of [`svk_${'0'.repeat(48)}`, secret.toUpperCase(), 'svk_', '']) {
      expectRefused(await channel.ingest({ group: 'a' }, { 'x-api-key': key }), 401, 'Unauthorized')
    }
    expect((await channel.ingest({ group: 'a' })).status).to.equal(202)
  })

  it('refuses a key of another account, or one that is limited to other projects', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const foreign = await on.installation.api(await freshPayer(1)).createKey()
    const limited = await on.api.createKey({ projectIds: [await on.api.createProject()] })
    const fitting = await on.api.createKey({ projectIds: [channel.projectId] })
    const text = 'API key does not have access to this buffer'
    for (const { secret } of [foreign, limited])
      expectRefused(await channel.ingest({ group: 'a' }, { 'x-api-key': secret }), 403, text)
    expect((await channel.ingest({ group: 'a' }, { 'x-api-key': fitting.secret })).status).to.equal(202)
    for (const { keyId } of [limited, fitting])
      await on.api.expect(204, 'DELETE', `/v1/admin/api-keys/${keyId}`)
  })
})

describe('ingest with source verification', function () {
  this.timeout(120_000)
  const on = harness()

  it('takes only the HMAC-SHA256 of the raw bytes', async () => {
    const sourceVerification = { enabled: true, signingSecret: 'shhh é', algorithm: 'hmac-sha1' as const }
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 1 }, sourceVerification })
    const body = '{ "group":"a" ,"n":1.0}\n'
    const signed = (text: string, algorithm = 'sha256') =>
      createHmac(algorithm, 'shhh é').update(text).digest('hex')
    expectRefused(await channel.ingest(body), 401, 'Missing signature header')
    const wrong = [
      signed(JSON.stringify(JSON.parse(body))),
      signed(body, 'sha1'),
      `sha256=${signed(body)}`,
      signed(body).toUpperCase(),
      'x',
    ]
    for (const signature of wrong)
      expectRefused(
        await channel.ingest(body, { 'x-webhook-signature': signature }),
        401,
        'Invalid signature',
      )
    await channel.send(body, { 'x-webhook-signature': signed(body) })
    const [request] = await channel.untilRequests(1)
    expect(request!.body.toString()).to.contain(`"payload":${body}}`)
  })

  it('reads its own header, and no signature once it is switched off', async () => {
    const sourceVerification = { enabled: true, signingSecret: 's', signatureHeader: 'X-Shop-Signature' }
    const channel = await on.channel({ batch: NEVER_DUE, sourceVerification })
    const signature = createHmac('sha256', 's').update('{"group":"a"}').digest('hex')
    const missing = await channel.ingest('{"group":"a"}', { 'x-webhook-signature': signature })
    expectRefused(missing, 401, 'Missing signature header')
    await channel.send('{"group":"a"}', { 'x-shop-signature': signature })
    await channel.patch({ sourceVerification: { enabled: false } })
    await onceKnown(() => channel.send('{"group":"a"}'))
  })
})

describe('the group of a request', function () {
  this.timeout(120_000)
  const on = harness()
  const batch = { ...NEVER_DUE, maxItems: 1 }
  const MISSING = 'Could not extract group key from request'

  it('is read from the body by its path, and from the fallback header when that yields nothing', async () => {
    const channel = await on.channel({
      batch,
      groupKey: { mode: 'jsonpath', path: '$.data.list.1.customer', fallbackHeader: 'X-Customer' },
    })
    const header = { 'x-customer': 'from header' }
    const sent: [body: string, headers: Record<string, string>, key: string][] = [
      ['{"data":{"list":[0,{"customer":"from body"}]}}', header, 'from body'],
      ['{"data":{"list":[0,{"customer":1.50}]}}', header, '1.50'],
      ['{"data":{"list":[0,{"customer":false}]}}', header, 'false'],
      ['{"data":{"list":[0,{"customer":""}]}}', header, 'from header'],
      ['{"data":{"list":[0,{"customer":null}]}}', header, 'from header'],
      ['{"data":{"list":[0,{"customer":{}}]}}', header, 'from header'],
      ['{"data":7}', header, 'from header'],
      ['[]', header, 'from header'],
    ]
    const wanted = new Map<string, string>()
    for (const [body, headers, key] of sent) wanted.set((await channel.send(body, headers)).messageId, key)
    const batches = await channel.untilBatches(sent.length)
    const keys = batches.flatMap(({ svc, items }) =>
      items.map((item) => [item.messageId, svc.groupKey] as const),
    )
    expect(new Map(keys)).to.deep.equal(wanted)
    expectRefused(await channel.ingest('{"data":7}'), 400, MISSING)
    expectRefused(await channel.ingest('{"data":7}', { 'x-customer': '' }), 400, MISSING)
  })

  it('is read from the header alone in header mode', async () => {
    const channel = await on.channel({ batch, groupKey: { mode: 'header', fallbackHeader: 'X-Customer' } })
    await channel.send({ group: 'in body' }, { 'x-CUSTOMER': 'in header' })
    const [first] = await channel.untilBatches(1)
    expect(first!.svc.groupKey).to.equal('in header')
    expectRefused(await channel.ingest({ group: 'in body' }), 400, MISSING)
  })
})

describe('ingest', function () {
  this.timeout(120_000)
  const on = harness()

  it('refuses what names no buffer of the project, or is no JSON', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const { api, projectId, bufferId } = channel
    const foreignProject = await api.createProject()
    expectRefused(await api.ingest(projectId, 'unknown', { group: 'a' }), 404, 'Buffer not found')
    const text = 'Buffer does not belong to this project'
    expectRefused(await api.ingest(foreignProject, bufferId, { group: 'a' }), 400, text)
    for (const body of ['', '{"group":', "{'group':'a'}", '{"group":"a"} x']) {
      const answer = await channel.ingest(body)
      expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([
        400,
        'text/html; charset=utf-8',
      ])
      expect(answer.text).to.contain('Bad Request')
    }
  })
})

function expectRefused(answer: Answer, status: number, error: string): void {
  expect([answer.status, answer.text]).to.deep.equal([status, `${JSON.stringify({ error })}\n`])
}
