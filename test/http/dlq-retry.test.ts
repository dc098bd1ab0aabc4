import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import type { DeadBatch } from '../../internal/shard/ports.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { adminHarnessOfSuite, refuses } from './admin-harness.ts'
import { type Answer, bufferBody, call } from './caller.ts'

describe('dead letters over HTTP', () => {
  const harness = adminHarnessOfSuite()
  let sink: Sink
  let bufferId: string
  let batch: DeadBatch

  before(async () => {
    sink = await startSink()
  })
  after(() => sink.close())
  beforeEach(async () => {
    sink.clear()
    sink.otherwise({})
    bufferId = `buffer-${randomUUID()}`
    batch = await writeDeadLetter(bufferId, 'shop')
  })

  async function writeDeadLetter(id: string, projectId: string): Promise<DeadBatch> {
    const { db } = harness.service
    const delivery = { url: sink.url('/hook') }
    const made = await harness.owner.post('/v1/admin/buffers', bufferBody(id, projectId, { delivery }))
    expect(made.status).to.equal(201)
    const [row] = await db<{ uid: string }[]>`SELECT uid FROM buffers WHERE buffer_id = ${id}`
    const given = deadBatch({ uid: row!.uid, bufferId: id, projectId, customerId: 'acme' })
    await createDeadLetters(db).write({ shard: 0, epoch: 1 }, given)
    return given
  }

  const path = (dlqId = batch.dlqId) => `/v1/dlq/${dlqId}/retry`
  const item = async () =>
    (await harness.owner.get(`/v1/dlq/${batch.dlqId}?customerId=acme`)).json as Record<string, unknown>

  it('are retried with an empty body, an empty object or the own customerId', async () => {
    for (const body of [undefined, {}, { customerId: 'acme' }]) {
      const { dlqId } = await writeDeadLetter(`buffer-${randomUUID()}`, 'shop')
      const answer = await harness.owner.post(path(dlqId), body)
      expect(answer.status, answer.text).to.equal(200)
      expect(answer.json).to.deep.equal({
        success: true,
        status: 'delivered',
        message: 'The destination accepted the batch of 1 item',
        dlqId,
        itemCount: 1,
        statusCode: 200,
        durationMs: (answer.json as { durationMs: number }).durationMs,
      })
      await refuses(harness.owner.get(`/v1/dlq/${dlqId}?customerId=acme`), 404, /^DLQ item not found$/)
    }
    expect(sink.requests()).to.have.length(3)
  })

  it('that fail again answer 502 with everything', async () => {
    sink.otherwise({ status: 503 })
    const answer = await harness.owner.post(path(), {})
    const { durationMs, ...json } = answer.json as Record<string, unknown>
    expect([answer.status, json]).to.deep.equal([
      502,
      {
        error: 'The destination did not accept the batch',
        code: 'delivery_failed',
        dlqId: batch.dlqId,
        itemCount: 1,
        statusCode: 503,
        lastError: 'the destination answered 503',
        errorClass: 'http_5xx',
        retryCount: 1,
      },
    ])
    expect(durationMs).to.be.a('number')
    expect(await item()).to.include({ retryCount: 1, lastStatusCode: 503 })
  })

  it('answer 409 while another retry runs', async () => {
    const { promise: answered, resolve: answerNow } = Promise.withResolvers<object>()
    sink.otherwise(() => answered)
    const running = harness.owner.post(path())
    await sink.waitForCount(1)
    const late: Answer = await harness.owner.post(path())
    expect([late.status, late.json]).to.deep.equal([
      409,
      { error: 'Another retry of this DLQ item is in progress', code: 'retry_in_progress' },
    ])
    answerNow({})
    expect((await running).status).to.equal(200)
    expect(sink.requests()).to.have.length(1)
  })

  it('without their batch answer 409', async () => {
    await harness.service.db`UPDATE dlq_items SET body = NULL WHERE dlq_id = ${batch.dlqId}`
    for (const answer of [
      await harness.owner.post(path()),
      await harness.owner.get(`/v1/dlq/${batch.dlqId}/batch`),
    ]) {
      expect(answer.status).to.equal(409)
      expect(answer.json).to.deep.equal({
        error: 'The full batch of this DLQ item is not stored',
        code: 'payload_unavailable',
      })
    }
    expect(await item()).to.include({ payloadStored: false, retryCount: 0 })
  })

  it('are not retried for who may not, what is not there, or a body that is none; nothing changes', async () => {
    const before = await item()
    for (const who of [harness.viewer, harness.member]) {
      const denied = await who.post(path())
      expect(denied.status).to.equal(403)
      expect(denied.json).to.deep.include({ message: 'Requires one of the following roles: admin, owner' })
    }
    await refuses(call(harness.service.url + path(), { method: 'POST' }), 401)
    await refuses(harness.owner.post(path(), { customerId: 'rival' }), 403, /^customerId differs/)
    await refuses(harness.rival.post(path()), 403, /^DLQ item belongs to another customer$/)
    await refuses(harness.scoped.post(path()), 404, /^DLQ item not found$/)
    await refuses(harness.owner.post(path('none')), 404, /^DLQ item not found$/)
    await refuses(harness.owner.post(path('a%2fb')), 404)
    await refuses(harness.owner.post(path('%2e%2e')), 404)
    for (const body of ['[]', 'null', '{', '"x"', '1'])
      await refuses(harness.owner.post(path(), body), 400, /body/i)
    await refuses(harness.owner.post(path(), { customerId: 1 }), 400, /^customerId/)
    await refuses(harness.owner.post(path(), { customerId: null }), 400, /^customerId/)
    await refuses(harness.owner.post(path(), { force: true }), 400, /^force/)
    await refuses(harness.owner.get(path()), 405)
    expect(await item()).to.deep.equal(before)
    expect(sink.requests()).to.have.length(0)
  })
})
