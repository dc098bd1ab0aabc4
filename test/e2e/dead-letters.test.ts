/**
 * Batches that fail for good, and buffers that fail too often (docs/reference/api.md, "Dead letters";
 * docs/reference/buffers.md, "Automatic pause").
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import { batchOf, type Channel, type ChannelFields, harness, NEVER_DUE, payloadsOf, SOON } from './harness.ts'

const AT_ONCE: ChannelFields = {
  batch: { ...NEVER_DUE, maxItems: 1 },
  throughput: { maxAttempts: 3, backoff: { initialMs: 50, maxMs: 50 } },
  dlqPauseThreshold: 10,
}

describe('a batch that fails for good', function () {
  this.timeout(120_000)
  const on = harness()

  it('is a dead letter with all its fields after maxAttempts attempts', async () => {
    const channel = await on.channel({ ...AT_ONCE, batch: { ...NEVER_DUE, maxItems: 2 } })
    channel.answer({ status: 503 })
    const fill = 'é'.repeat(600)
    const since = Date.now()
    const first = await channel.send({ group: 'key 1', messageId: 'one', fill })
    const second = await channel.send({ group: 'key 1', n: 2 })
    const [dead] = await channel.untilDead()
    const requests = channel.requests()
    expect(requests).to.have.length(3)
    const { svc, window, items } = batchOf(requests[0]!)
    const key = String(requests[0]!.headers['x-idempotency-key'])
    const { dlqId, createdAt, lastError, ...rest } = dead!
    expect(rest).to.deep.equal({
      customerId: 'e2e',
      projectId: channel.projectId,
      bufferId: channel.bufferId,
      groupId: svc.groupHash,
      groupKey: 'key 1',
      reason: 'max_retries_exceeded',
      lastStatusCode: 503,
      attempt: 2,
      itemCount: 2,
      payloadSummary: {
        messageIds: ['one', second.messageId],
        firstPayloadPreview: JSON.stringify({ group: 'key 1', messageId: 'one', fill }).slice(0, 500),
      },
      payloadStored: true,
      batch: {
        groupHash: svc.groupHash,
        segment: 0,
        firstItemAt: window.firstItemAt,
        lastActivityAt: window.lastActivityAt,
        groupVersion: Number(/:v(\d+)$/.exec(key)![1]),
        payloadBytes: items.reduce((sum, { payload }) => sum + Buffer.byteLength(JSON.stringify(payload)), 0),
      },
      retryCount: 0,
      lastRetryAt: null,
    })
    expect(first.messageId).to.equal('one')
    expect(dlqId).to.be.a('string').with.length.above(8)
    expect(lastError).to.match(/503/)
    expect(createdAt).to.be.within(since, Date.now())
    expect(key).to.equal(`grp:${dead!.groupId}:v${dead!.batch.groupVersion}`)
  })

  it('shows what the destination answered to the last attempt', async () => {
    const channel = await on.channel(AT_ONCE)
    channel.answer({ status: 422, body: '{"error":"no such customer: \u0000ada"}' })
    await channel.send({ group: 'a' })
    const [dead] = await channel.untilDead()
    expect(dead).to.include({ lastStatusCode: 422, lastResponse: '{"error":"no such customer: \ufffdada"}' })
    channel.answer({ status: 500, body: 'é'.repeat(5_000) })
    expect((await channel.api.request('POST', `/v1/dlq/${dead!.dlqId}/retry`)).status).to.equal(502)
    const [again] = await channel.api.deadLetters(channel.bufferId)
    expect(again).to.include({ lastStatusCode: 500, lastResponse: 'é'.repeat(512) })
  })

  it('is kept as exactly the bytes that failed', async () => {
    const channel = await on.channel(AT_ONCE)
    channel.answer({ status: 500 })
    await channel.send('{"group":"a", "n":1.0, "twice":1, "twice":2 }')
    const [dead] = await channel.untilDead()
    expect(await channel.api.deadBatch(dead!.dlqId)).to.equal(channel.requests()[0]!.body.toString())
    const one = await channel.api.expect(200, 'GET', `/v1/dlq/${dead!.dlqId}?customerId=e2e`)
    expect(one).to.deep.equal(dead)
  })

  it('is a dead letter at once when it is answered 4xx', async () => {
    for (const status of [400, 410, 429, 499]) {
      const channel = await on.channel(AT_ONCE)
      channel.answer({ status })
      await channel.send({ group: 'a' })
      const [dead] = await channel.untilDead()
      expect(dead).to.include({ reason: 'non_retryable_error', lastStatusCode: status, attempt: 0 })
      await channel.send({ group: 'a', next: true })
      await channel.untilDead(2)
      expect(channel.batches().map(({ items }) => items[0]!.payload.next)).to.deep.equal([undefined, true])
    }
  })

  it('has the status 0 when no answer came', async () => {
    const channel = await on.channel(AT_ONCE)
    channel.answer({ fault: 'reset' })
    await channel.send({ group: 'a' })
    const [dead] = await channel.untilDead()
    expect(dead).to.include({ reason: 'max_retries_exceeded', lastStatusCode: 0, attempt: 2 })
    expect(dead!.lastError).to.match(/connection/)
  })

  it('is not sent again when its dead letter was removed, and the id of its items is free', async () => {
    const channel = await on.channel(AT_ONCE)
    channel.answer({ status: 400 })
    await channel.send({ group: 'a', messageId: 'same' })
    const [dead] = await channel.untilDead()
    await channel.api.expect(204, 'DELETE', `/v1/dlq/${dead!.dlqId}?customerId=e2e`)
    channel.answer({})
    expect(await channel.send({ group: 'a', messageId: 'same', next: true })).not.to.have.property(
      'duplicate',
    )
    const batches = await channel.untilBatches(2)
    expect(payloadsOf(batches).map(({ next }) => next)).to.deep.equal([undefined, true])
    expect(await channel.api.deadLetters(channel.bufferId)).to.deep.equal([])
  })
})

describe('a buffer whose batches go to the dead letter queue', function () {
  this.timeout(120_000)
  const on = harness()
  const fields: ChannelFields = { ...AT_ONCE, throughput: { maxAttempts: 1 }, dlqPauseThreshold: 3 }

  it('is disabled with the third in a row; enabled again it starts counting anew and goes on', async () => {
    const since = Date.now()
    const channel = await on.channel({ ...fields, batch: SOON })
    channel.answer({ status: 400 })
    for (const count of [1, 2]) {
      await channel.send({ group: `failing ${count}` })
      await channel.untilDead(count)
      expect(await channel.read()).to.include({ enabled: true, consecutiveDlqCount: count })
    }
    await channel.patch({ batch: NEVER_DUE })
    await channel.sendAll([{ group: 'held' }, { group: 'held' }])
    await channel.patch({ batch: { ...NEVER_DUE, maxItems: 2 } })
    await channel.untilDead(3)
    const paused = await channel.read()
    const pausedReason = 'consecutive_dead_letters'
    expect(paused).to.include({ enabled: false, consecutiveDlqCount: 3, pausedReason })
    expect(paused.pausedAt).to.be.within(since, Date.now())
    const [dead] = await channel.api.deadLetters(channel.bufferId)
    const told = { bufferId: channel.bufferId, reason: pausedReason, dlqId: dead!.dlqId }
    await eventually(() => expect(on.installation.events('buffer paused', told)).to.have.length(1))
    expect(on.installation.events('dead', { dlqId: dead!.dlqId, paused: true })).to.have.length(1)
    expect(await on.installation.metric('penstock_buffer_pauses_total')).to.be.at.least(1)
    await untilRefused(channel)
    // As it was read, but for the change.
    expect(await channel.patch({ ...paused, name: 'Paused' })).to.include({ pausedReason, name: 'Paused' })
    const resumed = await channel.patch({ enabled: true, batch: SOON })
    expect(resumed).to.include({ enabled: true, consecutiveDlqCount: 0 })
    expect(resumed).not.to.have.any.keys('pausedReason', 'pausedAt')
    expect(await channel.patch({ enabled: false })).not.to.have.any.keys('pausedReason', 'pausedAt')
    await channel.patch({ enabled: true })
    channel.answer({})
    const before = channel.requests().length
    await channel.send({ group: 'after' })
    await channel.untilRequests(before + 1)
  })

  it('holds what is buffered while it is disabled, and delivers it when it is enabled', async () => {
    const channel = await on.channel({
      ...fields,
      dlqPauseThreshold: 1,
      batch: { ...NEVER_DUE, maxItems: 2 },
    })
    channel.answer({ status: 400 })
    await channel.send({ group: 'held' })
    await channel.sendAll([{ group: 'failing' }, { group: 'failing' }])
    await channel.untilDead()
    await untilRefused(channel)
    channel.answer({})
    await channel.patch({ enabled: true, batch: { idleTimeoutMs: 100 } })
    // Beside them goes what came before the node heard of the pause.
    await eventually(() => {
      const groups = channel.batches().map(({ svc }) => svc.groupKey)
      expect(groups.filter((group) => group !== 'late')).to.deep.equal(['failing', 'held'])
    })
  })

  it('counts from 0 again after a delivered batch', async () => {
    const channel = await on.channel(fields)
    for (const [status, count] of [
      [400, 1],
      [400, 2],
      [200, 0],
      [400, 1],
      [400, 2],
    ] as const) {
      channel.answer({ status })
      await channel.send({ group: 'a' })
      await eventually(async () => expect((await channel.read()).consecutiveDlqCount).to.equal(count))
    }
    expect(await channel.read()).to.include({ enabled: true })
    expect(await channel.api.deadLetters(channel.bufferId)).to.have.length(4)
  })

  it('is not disabled by batches that fail by turns with delivered ones, however fast they follow', async () => {
    const channel = await on.channel({ ...fields, dlqPauseThreshold: 2 })
    channel.answer((request) => ({ status: batchOf(request).items[0]!.payload.n % 2 === 0 ? 400 : 200 }))
    await channel.sendAll([0, 1, 2, 3, 4, 5, 6].map((n) => ({ group: 'a', n })))
    await channel.untilDead(4)
    expect(await channel.read()).to.include({ enabled: true, consecutiveDlqCount: 1 })
  })
})

/** The node hears of the pause through the change feed: within 100 ms, not with the dead letter itself. */
async function untilRefused(channel: Channel): Promise<void> {
  const refused = await eventually(async () => {
    const answer = await channel.ingest({ group: 'late' })
    return answer.status !== 202 && answer
  })
  expect([refused.status, refused.json()]).to.deep.equal([400, { error: 'Buffer is disabled' }])
}
