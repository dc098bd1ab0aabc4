/** Manual retries, clones and tests on the running service, and what is left of a deleted buffer. */
import { expect } from 'chai'
import { after, describe, it } from 'mocha'

import { sign } from '../../internal/domain/signature.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import type { Answer } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createInstallation } from '../support/service.ts'
import { batchOf, type Channel, type ChannelFields, harness, NEVER_DUE } from './harness.ts'

const AT_ONCE: ChannelFields = {
  batch: { ...NEVER_DUE, maxItems: 1 },
  throughput: { maxAttempts: 1 },
  dlqPauseThreshold: 10,
}

const retry = (channel: Channel, dlqId: string): Promise<Answer> =>
  channel.api.request('POST', `/v1/dlq/${dlqId}/retry`)

/** One dead letter of a batch that the destination refused. */
async function deadOf(channel: Channel, payload: string | object = { group: 'a' }): Promise<string> {
  channel.answer({ status: 400 })
  await channel.send(payload)
  const [dead] = await channel.untilDead()
  return dead!.dlqId
}

describe('a manual retry', function () {
  this.timeout(120_000)
  const on = harness()

  it('sends the same bytes under the same key as the buffer is configured now', async () => {
    const signing = { secret: 'old', header: 'x-sig' }
    const channel = await on.channel({ ...AT_ONCE, delivery: { signing } })
    const dlqId = await deadOf(channel, '{"group":"a", "n":1.50, "twice":1, "twice":2 }')
    const [failed] = channel.requests()
    await channel.patch({
      delivery: {
        url: on.sink.url('/moved'),
        method: 'PUT',
        headers: { 'x-new': 'yes' },
        signing: { secret: 'current' },
      },
    })
    const answer = await retry(channel, dlqId)
    expect(answer.status, answer.text).to.equal(200)
    const [sent] = on.sink.requests('/moved')
    expect([sent!.method, sent!.headers['x-new']]).to.deep.equal(['PUT', 'yes'])
    expect(Buffer.compare(sent!.body, failed!.body)).to.equal(0)
    expect(sent!.headers['x-idempotency-key']).to.equal(failed!.headers['x-idempotency-key'])
    expect(failed!.headers['x-sig']).to.equal(sign('old', failed!.body))
    expect(sent!.headers['x-sig']).to.equal(sign('current', sent!.body))
    expect(await channel.api.deadLetters(channel.bufferId)).to.deep.equal([])
    expect((await retry(channel, dlqId)).status).to.equal(404)
    expect(channel.requests()).to.have.length(1)
  })

  it('against a destination that hangs ends after 10 s', async () => {
    const channel = await on.channel(AT_ONCE)
    const dlqId = await deadOf(channel)
    channel.answer({ fault: 'hang' })
    const answer = await retry(channel, dlqId)
    expect(answer.status).to.equal(502)
    const { durationMs, ...body } = answer.json()
    expect(body).to.deep.equal({
      error: 'The destination did not accept the batch',
      code: 'delivery_failed',
      dlqId,
      itemCount: 1,
      statusCode: 0,
      retryCount: 1,
      lastError: 'no response within 10000 ms',
      errorClass: 'timeout',
    })
    // But for the clocks' grain.
    expect(durationMs).to.be.at.least(9_990)
    const [dead] = await channel.api.deadLetters(channel.bufferId)
    expect(dead).to.include({ retryCount: 1, lastStatusCode: 0, lastError: body.lastError, attempt: 0 })
    expect(dead!.lastRetryAt).to.be.at.least(dead!.createdAt)
  })

  it('counts in no analytics, nor does a test of the buffer', async () => {
    const channel = await on.channel(AT_ONCE)
    const dlqId = await deadOf(channel)
    expect((await retry(channel, dlqId)).status).to.equal(502)
    channel.answer({})
    expect((await retry(channel, dlqId)).status).to.equal(200)
    const payload = { group: 'a' }
    const test = `/v1/admin/buffers/${channel.bufferId}/test`
    const tested = await channel.api.expect(200, 'POST', test, { payload })
    expect(tested).to.include({ success: true })
    await channel.send({ group: 'a' })
    const path = `/v1/analytics/timeseries?customerId=e2e&bufferId=${channel.bufferId}&days=1`
    await eventually(async () => {
      const { totals } = await channel.api.expect<{ totals: object }>(200, 'GET', path)
      expect(totals).to.include({
        ingestCount: 2,
        deliveryCount: 2,
        deliverySuccess: 1,
        deliveryFail: 1,
        dlqCount: 1,
        retryCount: 0,
        itemsDelivered: 1,
      })
    })
  })
})

describe('a clone and a test of a buffer', function () {
  this.timeout(120_000)
  const on = harness()

  it('deliver like the original: the clone its own batches, the test one item', async () => {
    const delivery = { method: 'PUT', signing: { secret: 's3cret', header: 'x-sig' } } as const
    const channel = await on.channel({ ...AT_ONCE, delivery })
    const path = `/v1/admin/buffers/${channel.bufferId}/clone`
    const clone = await channel.api.expect<{ bufferId: string; name: string }>(201, 'POST', path)
    expect(clone).to.include({ bufferId: `${channel.bufferId}-copy`, name: `${channel.bufferId} (Copy)` })
    const taken = await channel.api.ingest(channel.projectId, clone.bufferId, { group: 'a' })
    expect(taken.status).to.equal(202)
    const [request] = await channel.untilRequests(1)
    expect(batchOf(request!).svc).to.include({ bufferId: clone.bufferId, groupKey: 'a' })
    const report = await channel.api.expect(200, 'POST', `/v1/admin/buffers/${clone.bufferId}/test`, {
      payload: { hello: 1 },
    })
    expect(report).to.include({ success: true, statusCode: 200, error: null })
    const [, test] = channel.requests()
    expect(test!.headers['x-idempotency-key']).to.match(/^grp:test-.*:v0$/)
    expect(batchOf(test!).items.map(({ payload }) => payload)).to.deep.equal([{ hello: 1 }])
    for (const { method, headers, body } of [request!, test!]) {
      expect([method, headers['x-sig']]).to.deep.equal(['PUT', sign('s3cret', body)])
    }
  })
})

describe('a service that dies, and one that cleans up', function () {
  this.timeout(120_000)
  let db: Database
  const on = harness({
    async installation() {
      const databaseUrl = await freshDatabase()
      db = connect(databaseUrl, { max: 2 })
      const env = {
        PENSTOCK_NATS_URL: (await natsAccount()).url,
        PENSTOCK_DATABASE_URL: databaseUrl,
        PENSTOCK_SHARDS: '2',
      }
      const installation = await createInstallation({ env })
      await installation.start()
      return installation
    },
  })
  after(() => db.end({ timeout: 2 }))

  it('in the middle of a retry holds its lock for a while, and the next retry has the same key', async () => {
    const channel = await on.channel(AT_ONCE)
    const dlqId = await deadOf(channel)
    channel.answer({ fault: 'hang' })
    const cut = retry(channel, dlqId).catch(() => 'cut')
    await channel.untilRequests(2)
    await on.installation.stop('SIGKILL')
    expect(await cut).to.equal('cut')
    await on.installation.start()
    channel.answer({})
    const early = await retry(channel, dlqId)
    expect([early.status, early.json().code]).to.deep.equal([409, 'retry_in_progress'])
    await db`UPDATE dlq_items SET retry_until = retry_until - interval '1 minute' WHERE dlq_id = ${dlqId}`
    const answer = await retry(channel, dlqId)
    expect(answer.status, answer.text).to.equal(200)
    const requests = channel.requests()
    expect(requests).to.have.length(3)
    expect(new Set(requests.map(({ headers }) => headers['x-idempotency-key'])).size).to.equal(1)
    expect(new Set(requests.map(({ body }) => body.toString())).size).to.equal(1)
  })

  it('removes the row of a deleted buffer when nothing of it is left, and keeps its dead letters', async () => {
    const channel = await on.channel({
      ...AT_ONCE,
      throughput: { maxAttempts: 5, backoff: { initialMs: 0 } },
    })
    const dlqId = await deadOf(channel)
    const { promise: answered, resolve: answerNow } = Promise.withResolvers<object>()
    channel.answer(() => answered)
    await channel.send({ group: 'held' })
    await channel.untilRequests(2)
    await channel.remove()
    await db`UPDATE buffers SET deleted_at = deleted_at - interval '1 hour' WHERE deleted_at IS NOT NULL`
    const held = async () =>
      (await db<{ held: string[] }[]>`SELECT held FROM shard_reports`).flatMap((row) => row.held)
    await eventually(async () => expect(await held()).to.have.length(1), { timeoutMs: 40_000 })
    const rows = () => db`SELECT FROM buffers WHERE deleted_at IS NOT NULL`
    expect(await rows()).to.have.length(1)
    answerNow({})
    await eventually(async () => expect(await rows()).to.have.length(0), { timeoutMs: 40_000 })
    expect((await channel.untilBatches(2)).at(-1)!.svc.groupKey).to.equal('held')
    expect(await channel.api.deadLetters(channel.bufferId)).to.have.length(1)
    const gone = await retry(channel, dlqId)
    expect([gone.status, gone.json()]).to.deep.equal([404, { error: 'Buffer not found' }])
  })
})
