import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { BufferRecord } from '../../internal/domain/model.ts'
import { type AccountsNode, accountsNode, bufferBody, principal, refusal } from '../support/accounts.ts'

describe('clones of buffers', () => {
  const acme = principal('acme')
  const other = principal('other')
  let node: AccountsNode
  let id: string

  before(async () => {
    node = await accountsNode()
    for (const customerId of ['acme', 'other']) await node.customers.ensure(customerId)
    for (const projectId of ['p', 'q']) await node.projects.create(acme, { projectId, name: projectId })
    await node.projects.create(other, { projectId: 'foreign', name: 'x' })
  })
  after(() => node.close())
  beforeEach(() => {
    id = `buffer-${randomUUID()}`
  })

  const everything = {
    enabled: false,
    groupKey: { mode: 'header', fallbackHeader: 'x-tenant' },
    batch: { maxItems: 7, maxBytes: 1_000, idleTimeoutMs: 200, maxWaitFromFirstMs: 300 },
    overflow: { maxGroupItems: 9, maxGroupBytes: 10_000 },
    delivery: {
      url: 'https://example.com/hook',
      method: 'PUT',
      headers: { authorization: 'Bearer abc' },
      idempotencyHeader: 'x-once',
      signing: { secret: 'sign', header: 'x-sig' },
    },
    throughput: { maxAttempts: 5, backoff: { initialMs: 1, maxMs: 2, multiplier: 3 } },
    dlqPauseThreshold: 9,
    messageId: { path: '$.id', header: 'x-id' },
    sourceVerification: {
      enabled: true,
      scheme: 'stripe',
      signingSecret: 'source',
      previousSecret: 'before',
      toleranceSeconds: 9,
    },
    requireApiKey: true,
    analytics: { sampleDeliveryLogs: 1 },
  }

  it('copy all configuration, secrets too, and nothing of what happened', async () => {
    await node.buffers.create(acme, bufferBody(id, 'p', everything))
    await node.db`UPDATE buffers SET consecutive_dlq_count = 4, dead_buried = 4,
      created_at = 'epoch', updated_at = 'epoch' WHERE buffer_id = ${id}`
    const original = await node.buffers.record(acme, id)
    const since = Date.now() - 1
    const clone = await node.buffers.clone(acme, id, {})
    const { createdAt, updatedAt } = clone
    expect(clone).to.deep.equal({
      ...original.buffer,
      bufferId: `${id}-copy`,
      name: 'Orders (Copy)',
      consecutiveDlqCount: 0,
      createdAt,
      updatedAt,
    })
    expect(createdAt).to.be.at.least(since)
    expect(updatedAt).to.equal(createdAt)
    const record = await node.buffers.record(acme, clone.bufferId)
    expect(record.uid).not.to.equal(original.uid)
    expect(record).to.include({ version: 1, deleted: false })
    expect(await node.db`SELECT FROM buffers WHERE uid = ${record.uid} AND dead_buried = 0`).to.have.length(1)
    expect(await node.buffers.record(acme, id)).to.deep.equal(original)
  })

  it('are known to the node at once', async () => {
    await node.buffers.create(acme, bufferBody(id, 'p'))
    await node.buffers.clone(acme, id, {})
    const cached = node.bufferCache.peekById(`${id}-copy`) as BufferRecord
    expect(cached.buffer.name).to.equal('Orders (Copy)')
  })

  it('take the first free id and the name that is given', async () => {
    await node.buffers.create(acme, bufferBody(id, 'p'))
    const clone = async (body: unknown = undefined) => {
      const { bufferId, name } = await node.buffers.clone(acme, id, body)
      return [bufferId.slice(id.length), name]
    }
    expect(await clone()).to.deep.equal(['-copy', 'Orders (Copy)'])
    expect(await clone({ name: 'Mine' })).to.deep.equal(['-copy-2', 'Mine'])
    expect(await clone()).to.deep.equal(['-copy-3', 'Orders (Copy)'])
    await node.buffers.remove(acme, `${id}-copy-2`)
    expect(await clone()).to.deep.equal(['-copy-2', 'Orders (Copy)'])
    // Ids are unique in the installation: somebody else's count too.
    await node.buffers.create(other, bufferBody(`${id}-copy-4`, 'foreign'))
    expect(await clone()).to.deep.equal(['-copy-5', 'Orders (Copy)'])
    const again = await node.buffers.clone(acme, `${id}-copy`, undefined)
    expect(again).to.include({ bufferId: `${id}-copy-copy`, name: 'Orders (Copy) (Copy)' })
  })

  it('take no id that another customer once had', async () => {
    await node.buffers.create(acme, bufferBody(id, 'p'))
    for (const suffix of ['', '-2']) {
      await node.buffers.create(other, bufferBody(`${id}-copy${suffix}`, 'foreign'))
      await node.buffers.remove(other, `${id}-copy${suffix}`)
    }
    const clone = await node.buffers.clone(acme, id, {})
    expect(clone).to.include({ bufferId: `${id}-copy-3`, customerId: 'acme' })
  })

  it('never collide, however many are made at once', async () => {
    await node.buffers.create(acme, bufferBody(id, 'p'))
    const clones = await Promise.all(Array.from({ length: 120 }, () => node.buffers.clone(acme, id, {})))
    const suffixes = clones.map(({ bufferId }) => bufferId.slice(`${id}-copy`.length)).sort()
    const wanted = ['', ...Array.from({ length: 119 }, (_, n) => `-${n + 2}`)].sort()
    expect(suffixes).to.deep.equal(wanted)
  })

  it('find another id when theirs is taken in between', async () => {
    await node.buffers.create(acme, bufferBody(id, 'p'))
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => [
        node.buffers.clone(acme, id, {}),
        node.buffers.create(acme, bufferBody(`${id}-copy-${n + 2}`, 'q')),
      ]).flat(),
    )
    const clones = outcomes.filter((_, n) => n % 2 === 0)
    for (const { status } of clones) expect(status).to.equal('fulfilled')
    const rows = await node.db`SELECT FROM buffers WHERE buffer_id LIKE ${`${id}-copy%`}`
    expect(rows).to.have.length(outcomes.filter(({ status }) => status === 'fulfilled').length)
  })

  it('have ids and names within their bounds, however long the original has them', async () => {
    const long = id.padEnd(128, 'x')
    await node.buffers.create(acme, bufferBody(long, 'p', { name: 'n'.repeat(256) }))
    const clones = [await node.buffers.clone(acme, long, {}), await node.buffers.clone(acme, long, {})]
    expect(clones.map(({ bufferId }) => bufferId)).to.deep.equal([
      `${long.slice(0, 123)}-copy`,
      `${long.slice(0, 121)}-copy-2`,
    ])
    for (const { name } of clones) expect(name).to.equal(`${'n'.repeat(249)} (Copy)`)
  })

  it('are refused with 404 for what the caller does not reach, and 400 for a bad body; nothing is made', async () => {
    await node.buffers.create(acme, bufferBody(id, 'p'))
    for (const stranger of [other, principal('acme', { projectIds: ['q'] })]) {
      expect(await refusal(node.buffers.clone(stranger, id, {}))).to.deep.equal({
        status: 404,
        error: 'Buffer not found',
      })
    }
    expect((await refusal(node.buffers.clone(acme, 'unknown', {}))).status).to.equal(404)
    for (const [body, error] of [
      [{ name: '' }, /^name /],
      [{ name: 5 }, /^name /],
      [{ name: null }, /^name /],
      [{ name: 'a\u0000b' }, /^name /],
      [{ name: 'a\ud800' }, /^name /],
      [{ name: 'n'.repeat(257) }, /^name /],
      [{ bufferId: 'x' }, /^bufferId /],
      [[], /^body /],
    ] as const) {
      const refused = await refusal(node.buffers.clone(acme, id, body))
      expect(refused.status, JSON.stringify(body)).to.equal(400)
      expect(refused.error).to.match(error)
    }
    await node.buffers.remove(acme, id)
    expect((await refusal(node.buffers.clone(acme, id, {}))).status).to.equal(404)
    expect(await node.db`SELECT FROM buffers WHERE buffer_id LIKE ${`${id}-copy%`}`).to.have.length(0)
  })

  it('are refused with 400 when every id is taken', async () => {
    await node.buffers.create(acme, bufferBody(id, 'p'))
    const { uid } = await node.buffers.record(acme, id)
    // In slices, each within the bound of a statement on a busy machine.
    for (let from = 1; from < 10_000; from += 1_000) {
      await node.db`
        INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config)
        SELECT gen_random_uuid(), ${id} || '-copy' || CASE n WHEN 1 THEN '' ELSE '-' || n END, 'acme', 'p', config
        FROM buffers, generate_series(${from}::int, ${from + 999}::int) AS n WHERE uid = ${uid}`
    }
    expect(await refusal(node.buffers.clone(acme, id, {}))).to.deep.equal({
      status: 400,
      error: 'Buffer could not be cloned',
    })
  })
})
