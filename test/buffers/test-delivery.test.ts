/** The test of a buffer, over a real client to a real destination. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { createTestDelivery, type TestReport } from '../../internal/buffers/test-delivery.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import { sign } from '../../internal/domain/signature.ts'
import { createBufferStore } from '../../internal/postgres/buffers.ts'
import { newClient } from '../delivery/fixture.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { type AccountsNode, accountsNode, bufferBody, principal, refusal } from '../support/accounts.ts'
import { UNLIMITED } from '../support/limits.ts'
import { type Sink, type SinkAnswer, startSink } from '../support/sink.ts'

describe('the test of a buffer', () => {
  const acme = principal('acme')
  let node: AccountsNode
  let sink: Sink
  let client: DeliveryClient
  let id: string

  before(async () => {
    node = await accountsNode()
    for (const customerId of ['acme', 'other']) await node.customers.ensure(customerId)
    for (const projectId of ['p', 'q']) await node.projects.create(acme, { projectId, name: projectId })
  })
  after(() => node.close())
  beforeEach(async () => {
    sink = await startSink()
    client = newClient()
    id = `buffer-${randomUUID()}`
  })
  afterEach(async () => {
    await client.close(0)
    await sink.close()
  })

  const create = (delivery: object = {}, more: object = {}) =>
    node.buffers.create(acme, bufferBody(id, 'p', { delivery: { url: sink.url(), ...delivery }, ...more }))

  function test(payload: object = { a: 1 }, who = acme, bufferId = id): Promise<TestReport> {
    const buffers = createBufferStore(node.db, node.box)
    const trial = createTestDelivery({
      buffers,
      deliveries: client,
      clock: node.clock,
      newId: randomUUID,
      ...UNLIMITED,
    })
    return trial.test(who, bufferId, Buffer.from(JSON.stringify(payload)))
  }

  it('delivers one item as a batch of the buffer: method, headers, key and signature', async () => {
    await create({
      method: 'PUT',
      url: sink.url('/hook?x=1'),
      headers: { 'x-tenant': 'blue' },
      idempotencyHeader: 'x-once',
      signing: { secret: 's3cret', header: 'x-sig' },
    })
    sink.otherwise({ status: 201, body: 'thanks' })
    const since = Date.now()
    const payload = { customer: 'ada', n: 1.5, deep: [{ x: null }] }
    const { durationMs, ...report } = await test(payload)
    expect(report).to.deep.equal({ success: true, statusCode: 201, responseBody: 'thanks', error: null })
    expect(durationMs).to.be.within(0, 10_000)
    const [request, ...more] = sink.requests()
    expect(more).to.deep.equal([])
    expect([request!.method, request!.path]).to.deep.equal(['PUT', '/hook?x=1'])
    const key = String(request!.headers['x-once'])
    expect(key).to.match(/^grp:test-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:v0$/)
    expect(request!.headers).to.include({ 'x-tenant': 'blue', 'x-sig': sign('s3cret', request!.body) })
    // biome-ignore lint/suspicious/noExplicitAny: a delivery batch.
    const body = request!.json() as any
    const [item] = body.items
    expect(body).to.deep.equal({
      svc: {
        customerId: 'acme',
        projectId: 'p',
        bufferId: id,
        groupKey: 'test',
        groupHash: key.slice(4, -3),
        segment: 0,
      },
      window: { firstItemAt: item.receivedAt, lastActivityAt: item.receivedAt, itemsCount: 1 },
      items: [{ messageId: item.messageId, receivedAt: item.receivedAt, payload }],
    })
    expect(item.receivedAt).to.be.within(since, Date.now())
    expect(item.messageId).to.match(/^[0-9a-f-]{36}$/)
  })

  it('has another key and message id each time', async () => {
    await create()
    await Promise.all([test(), test()])
    const keys = sink.requests().map(({ headers }) => headers['x-idempotency-key'])
    expect(new Set(keys).size).to.equal(2)
  })

  const failures: [string, SinkAnswer, Omit<TestReport, 'durationMs'>][] = [
    [
      'a refusal',
      { status: 422, body: '{"no":1}' },
      {
        success: false,
        statusCode: 422,
        responseBody: '{"no":1}',
        error: 'the destination answered 422',
      },
    ],
    [
      'an error without a body',
      { status: 503 },
      { success: false, statusCode: 503, responseBody: null, error: 'the destination answered 503' },
    ],
    [
      'a reset',
      { fault: 'reset' },
      { success: false, statusCode: 0, responseBody: null, error: 'connection reset (ECONNRESET)' },
    ],
  ]
  for (const [what, answer, expected] of failures) {
    it(`answers what came of ${what}, once`, async () => {
      await create({}, { throughput: { maxAttempts: 5 } })
      sink.otherwise(answer)
      const { durationMs, ...report } = await test()
      expect(report).to.deep.equal(expected)
      expect(durationMs).to.be.a('number')
      expect(sink.requests()).to.have.length(1)
    })
  }

  it('gives up after 10 s', async () => {
    await create()
    const clock = new ManualClock()
    client = newClient({ clock })
    sink.otherwise({ fault: 'hang' })
    const running = test()
    await sink.waitForCount(1)
    clock.advance(10_000)
    expect(await running).to.deep.equal({
      success: false,
      statusCode: 0,
      durationMs: 10_000,
      responseBody: null,
      error: 'no response within 10000 ms',
    })
  })

  it('looks its name up at the expense of the customer', async () => {
    await create({ url: sink.url('/', 'sink.test') })
    const payers: string[] = []
    client = newClient({
      resolve: async (_, customerId) => {
        payers.push(customerId)
        return [{ address: '127.0.0.1', family: 4 }]
      },
    })
    expect(await test()).to.include({ success: true })
    expect(payers).to.deep.equal(['acme'])
  })

  it('goes to no blocked address', async () => {
    await create({ url: 'http://169.254.169.254/latest/meta-data' })
    expect(await test()).to.include({
      success: false,
      statusCode: 0,
      responseBody: null,
      error: 'the destination has no public address, and PENSTOCK_ALLOW_DESTINATIONS does not permit it',
    })
  })

  it('keeps the first 4 KB of a long answer', async () => {
    await create()
    sink.otherwise({ fault: 'endless' })
    const { success, responseBody } = await test()
    expect([success, responseBody?.length]).to.deep.equal([true, 4_096])
  })

  it('works on a disabled buffer, and counts nowhere', async () => {
    await create({}, { enabled: false })
    sink.otherwise({ status: 500 })
    const before = await node.db`SELECT * FROM buffers WHERE buffer_id = ${id}`
    for (let n = 0; n < 3; n++) expect(await test()).to.include({ success: false })
    expect([...(await node.db`SELECT * FROM buffers WHERE buffer_id = ${id}`)]).to.deep.equal([...before])
    for (const table of ['delivery_days', 'ingest_days', 'dlq_items']) {
      expect(await node.db`SELECT FROM ${node.db(table)}`, table).to.have.length(0)
    }
    const used = await node.db`SELECT FROM customers WHERE credits_used_this_month <> 0`
    expect(used).to.have.length(0)
  })

  it('is 404 for what the caller does not reach, and sends nothing', async () => {
    await create()
    for (const stranger of [principal('other'), principal('acme', { projectIds: ['q'] })]) {
      expect(await refusal(test({}, stranger))).to.deep.equal({ status: 404, error: 'Buffer not found' })
    }
    expect((await refusal(test({}, acme, 'unknown'))).status).to.equal(404)
    await node.buffers.remove(acme, id)
    expect((await refusal(test())).status).to.equal(404)
    expect(sink.requests()).to.have.length(0)
  })
})
