/**
 * Buffers that are disabled, changed, deleted and created again while items are buffered
 * (docs/architecture/protocol.md, "Deleted buffers").
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { onceKnown } from '../support/fronts.ts'
import { type Channel, type ChannelFields, harness, NEVER_DUE, payloadsOf, SOON } from './harness.ts'

describe('a buffer with buffered items', function () {
  this.timeout(120_000)
  const on = harness()

  it('holds them while it is disabled, refuses new ones, and goes on when it is enabled', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const control = await on.channel({ batch: { idleTimeoutMs: 300 } })
    await channel.sendAll([{ group: 'a' }, { group: 'b' }])
    await channel.patch({ enabled: false, batch: { idleTimeoutMs: 100 } })
    const refused = await channel.ingest({ group: 'a' })
    expect([refused.status, refused.json()]).to.deep.equal([400, { error: 'Buffer is disabled' }])
    await control.send({ group: 'a' })
    await control.untilBatches(1)
    const enabledAt = Date.now()
    await channel.patch({ enabled: true })
    const requests = await channel.untilRequests(2)
    expect(
      payloadsOf(channel.batches())
        .map(({ group }) => group)
        .sort(),
    ).to.deep.equal(['a', 'b'])
    for (const { at } of requests) expect(at).to.be.at.least(enabledAt)
    expect((await channel.send({ group: 'a' })).status).to.equal('accepted')
  })

  it('holds a batch in back-off while it is disabled, and goes on with the same batch', async () => {
    const channel = await on.channel({
      batch: { ...SOON, maxItems: 1 },
      throughput: { maxAttempts: 5, backoff: { initialMs: 1_000, maxMs: 1_000 } },
    })
    // So long that at least two attempts would be due meanwhile.
    const control = await on.channel({ batch: { idleTimeoutMs: 3_000 } })
    channel.answer({ status: 500 })
    await channel.send({ group: 'a' })
    await channel.untilRequests(1)
    await channel.patch({ enabled: false })
    const attempts = channel.requests().length
    await control.send({ group: 'a' })
    await control.untilBatches(1)
    // One attempt may have been on its way when the buffer was disabled.
    expect(channel.requests().length).to.be.within(attempts, attempts + 1)
    channel.answer({})
    const before = channel.requests().length
    await channel.patch({ enabled: true })
    const requests = await channel.untilRequests(before + 1)
    expect(new Set(requests.map(({ body }) => body.toString())).size).to.equal(1)
    expect(new Set(requests.map(({ headers }) => headers['x-idempotency-key'])).size).to.equal(1)
  })

  it('delivers them when it is deleted while enabled, though ingest knows it no more at once', async () => {
    const channel = await on.channel({ batch: { idleTimeoutMs: 1_500 } })
    await channel.sendAll([1, 2, 3].map((n) => ({ group: 'a', n })))
    await channel.remove()
    const refused = await channel.ingest({ group: 'a', n: 4 })
    expect([refused.status, refused.json()]).to.deep.equal([404, { error: 'Buffer not found' }])
    const [batch] = await channel.untilBatches(1)
    expect(payloadsOf([batch!]).map(({ n }) => n)).to.deep.equal([1, 2, 3])
    expect(batch!.svc.bufferId).to.equal(channel.bufferId)
  })

  it('discards them when it is deleted while disabled, and a new one of its id inherits nothing', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    await channel.sendAll([1, 2, 3].map((n) => ({ group: 'a', n, messageId: `m${n}` })))
    await channel.patch({ enabled: false, batch: { idleTimeoutMs: 100 } })
    await channel.remove()
    const [discarded] = await channel.untilEvents('discarded', 1)
    expect(discarded).to.include({ items: 3 })
    const again = await recreate(channel, { batch: SOON })
    const fresh = await again.send({ group: 'a', n: 4, messageId: 'm1' })
    expect(fresh.duplicate).to.equal(undefined)
    expect(payloadsOf(await again.untilBatches(1)).map(({ n }) => n)).to.deep.equal([4])
    expect(again.requests()).to.have.length(1)
  })

  it('keeps them apart from those of a new buffer of the same id', async () => {
    const old = await on.channel({ batch: { idleTimeoutMs: 600 } })
    await old.send({ group: 'a', of: 'old', messageId: 'same' })
    await old.remove()
    const young = await recreate(old, { batch: SOON, delivery: { url: on.sink.url('/young') } })
    expect(await young.send({ group: 'a', of: 'young', messageId: 'same' })).not.to.have.property('duplicate')
    await on.sink.waitForCount(1, '/young')
    const [before] = await old.untilBatches(1)
    const [after] = on.sink.requests('/young').map((request) => request.json() as typeof before)
    expect([before!, after!].map(({ items }) => items.map(({ payload }) => payload.of))).to.deep.equal([
      ['old'],
      ['young'],
    ])
    expect(before!.svc.groupHash).not.to.equal(after!.svc.groupHash)
    expect(old.requests()).to.have.length(1)
  })

  it('delivers to the address and under the headers of its current configuration', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    await channel.send({ group: 'a' })
    await channel.patch({
      delivery: { url: on.sink.url('/moved'), method: 'PUT', headers: { 'x-new': 'yes' } },
    })
    await channel.patch({ batch: { idleTimeoutMs: 100 } })
    const moved = await on.sink.waitForCount(1, '/moved')
    const request = moved.find(({ path }) => path === '/moved')!
    expect([request.method, request.headers['x-new']]).to.deep.equal(['PUT', 'yes'])
    expect(channel.requests()).to.have.length(0)
  })
})

describe('a change of a buffer', function () {
  this.timeout(120_000)
  const on = harness()

  it('is seen by the very next request', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    for (let round = 0; round < 10; round++) {
      await channel.patch({ enabled: false })
      expect((await channel.ingest({ group: 'a' })).status).to.equal(400)
      await channel.patch({ enabled: true, groupKey: { path: `$.key${round}` } })
      await onceKnown(async () => {
        expect((await channel.ingest({ [`key${round}`]: 'a' })).status).to.equal(202)
        expect((await channel.ingest({ [`key${round - 1}`]: 'a' })).status).to.equal(400)
      })
    }
    await channel.remove()
    expect((await channel.ingest({ key9: 'a' })).status).to.equal(404)
  })

  it('that is refused changes nothing', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    const before = await channel.read()
    const answer = await channel.api.request('PATCH', `/v1/admin/buffers/${channel.bufferId}`, {
      name: 'another',
      batch: { maxItems: 0 },
    })
    expect(answer.status).to.equal(400)
    expect(answer.json().error).to.match(/batch\.maxItems/)
    expect(await channel.read()).to.deep.equal(before)
  })

  it('of an id that was deleted is a 404, and the id is free', async () => {
    const channel = await on.channel({ batch: NEVER_DUE })
    await channel.remove()
    const patch = await channel.api.request('PATCH', `/v1/admin/buffers/${channel.bufferId}`, { name: 'x' })
    expect(patch.status).to.equal(404)
    await recreate(channel, { name: 'another' })
    expect(await channel.read()).to.include({ name: 'another', enabled: true, consecutiveDlqCount: 0 })
  })
})

/** Another buffer of the same id, delivered to the same place unless `fields` says otherwise. */
async function recreate(old: Channel, fields: ChannelFields): Promise<Channel> {
  const delivery = { url: old.url, ...fields.delivery }
  await old.api.createBuffer(old.projectId, old.bufferId, { ...fields, delivery })
  return old
}
