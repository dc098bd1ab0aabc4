import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { type Sink, startSink } from '../support/sink.ts'
import { adminHarnessOfSuite, refuses } from './admin-harness.ts'
import { bufferBody, call } from './caller.ts'

describe('clone and test of a buffer over HTTP', () => {
  const harness = adminHarnessOfSuite()
  let sink: Sink
  let bufferId: string

  before(async () => {
    sink = await startSink()
  })
  after(() => sink.close())
  beforeEach(async () => {
    sink.clear()
    sink.otherwise({})
    bufferId = `buffer-${randomUUID()}`
    const delivery = { url: sink.url('/hook'), signing: { secret: 'hush' } }
    const made = await harness.owner.post('/v1/admin/buffers', bufferBody(bufferId, 'shop', { delivery }))
    expect(made.status).to.equal(201)
  })

  const cloneOf = (id = bufferId) => `/v1/admin/buffers/${id}/clone`
  const testOf = (id = bufferId) => `/v1/admin/buffers/${id}/test`
  const count = async () => (await harness.service.db`SELECT FROM buffers`).length

  it('answers 201 with the clone, its body empty or with a name', async () => {
    const first = await harness.member.post(cloneOf())
    expect(first.status, first.text).to.equal(201)
    expect(first.json).to.nested.include({
      bufferId: `${bufferId}-copy`,
      name: `${bufferId} (Copy)`,
      projectId: 'shop',
      customerId: 'acme',
      enabled: true,
      consecutiveDlqCount: 0,
      'delivery.signing.secret': 'hush',
    })
    const second = await harness.owner.post(cloneOf(), { name: 'Second' })
    expect([second.status, second.json]).to.deep.equal([201, second.json])
    expect(second.json).to.include({ bufferId: `${bufferId}-copy-2`, name: 'Second' })
    const read = await harness.owner.get(`/v1/admin/buffers/${bufferId}-copy`)
    expect(read.json).to.deep.equal(first.json)
    const taken = await call(`${harness.service.url}/v1/ingest/shop/${bufferId}-copy`, {
      method: 'POST',
      body: '{"customer":"ada"}',
    })
    expect(taken.status).to.equal(202)
  })

  it('refuses a clone for who may not, what is not there, and a bad body; none is made', async () => {
    const before = await count()
    const denied = await harness.viewer.post(cloneOf())
    expect(denied.json).to.deep.include({
      message: 'Requires one of the following roles: member, admin, owner',
    })
    expect(denied.status).to.equal(403)
    await refuses(call(harness.service.url + cloneOf(), { method: 'POST' }), 401)
    for (const who of [harness.rival, harness.scoped]) {
      await refuses(who.post(cloneOf()), 404, /^Buffer not found$/)
    }
    await refuses(harness.owner.post(cloneOf('none')), 404, /^Buffer not found$/)
    await refuses(harness.owner.post(cloneOf('a%2fb')), 404)
    await refuses(harness.owner.post(cloneOf(), '[]'), 400, /body/i)
    await refuses(harness.owner.post(cloneOf(), '{'), 400, /body/i)
    await refuses(harness.owner.post(cloneOf(), { name: '' }), 400, /^name/)
    await refuses(harness.owner.post(cloneOf(), { name: 'a\u0000b' }), 400, /^name/)
    await refuses(harness.owner.post(cloneOf(), { bufferId: 'mine' }), 400, /^bufferId/)
    expect(await count()).to.equal(before)
  })

  it('answers 200 with what came of the test, accepted or not', async () => {
    sink.otherwise({ status: 200, body: 'ok' })
    const good = await harness.member.post(testOf(), { payload: { a: 1 } })
    expect(good.status, good.text).to.equal(200)
    expect(good.json).to.include({ success: true, statusCode: 200, responseBody: 'ok', error: null })
    sink.otherwise({ status: 500 })
    const bad = await harness.owner.post(testOf(), { payload: {} })
    expect(bad.status).to.equal(200)
    expect(bad.json).to.include({ success: false, statusCode: 500, responseBody: null })
    expect(bad.json).to.have.property('error', 'the destination answered 500')
    expect(bad.json).to.have.keys('success', 'statusCode', 'durationMs', 'responseBody', 'error')
  })

  it('delivers the payload of a test byte for byte', async () => {
    const payload = '{ "n":1.0, "big":12345678901234567890, "d":1, "d":2, "e":1e400 }'
    const tested = await harness.owner.post(testOf(), `{"payload":0,\n "payload" : ${payload} }`)
    expect(tested.status, tested.text).to.equal(200)
    expect(sink.requests('/hook')[0]!.body.toString()).to.contain(`"payload":${payload}}]}`)
  })

  it('refuses a test for who may not, what is not there, and a payload that is no object; nothing is sent', async () => {
    const credits = await harness.owner.get('/v1/admin/credits')
    const payload = { a: 1 }
    expect((await harness.viewer.post(testOf(), { payload })).status).to.equal(403)
    for (const who of [harness.rival, harness.scoped]) {
      await refuses(who.post(testOf(), { payload }), 404, /^Buffer not found$/)
    }
    await refuses(harness.owner.post(testOf('none'), { payload }), 404, /^Buffer not found$/)
    for (const body of [{}, { payload: null }, { payload: [] }, { payload: 'x' }, { payload: 1 }]) {
      await refuses(harness.owner.post(testOf(), body), 400, /^payload/)
    }
    await refuses(harness.owner.post(testOf()), 400, /body/i)
    await refuses(harness.owner.post(testOf(), { payload, url: 'http://127.0.0.1/' }), 400, /^url/)
    const deep = `{"payload":${'{"a":'.repeat(64)}1${'}'.repeat(65)}`
    await refuses(harness.owner.post(testOf(), deep), 400, /nested/)
    expect(sink.requests()).to.have.length(0)
    expect((await harness.owner.get('/v1/admin/credits')).json).to.deep.equal(credits.json)
  })

  it('tests within the projects of a scoped key', async () => {
    const id = `buffer-${randomUUID()}`
    const delivery = { url: sink.url('/lab') }
    await harness.owner.post('/v1/admin/buffers', bufferBody(id, 'lab', { delivery, enabled: false }))
    expect((await harness.scoped.post(testOf(id), { payload: {} })).json).to.include({ success: true })
    expect((await harness.scoped.post(cloneOf(id))).json).to.include({ projectId: 'lab', enabled: false })
    expect(sink.requests('/lab')).to.have.length(1)
  })
})
