import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { BufferRecord } from '../../internal/domain/model.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { type AccountsNode, accountsNode, bufferBody, principal, refusal } from '../support/accounts.ts'

describe('buffers', () => {
  let node: AccountsNode
  const acme = principal('acme')
  const other = principal('other')

  before(async () => {
    node = await accountsNode()
    await node.customers.ensure('acme')
    await node.customers.ensure('other')
    for (const projectId of ['p', 'q']) await node.projects.create(acme, { projectId, name: projectId })
    await node.projects.create(other, { projectId: 'foreign', name: 'x' })
  })
  after(() => node.close())

  /** As the auto-pause leaves it. */
  async function pause(bufferId: string): Promise<void> {
    await node.db`UPDATE buffers SET enabled = false, consecutive_dlq_count = 3 WHERE buffer_id = ${bufferId}`
  }

  describe('creation', () => {
    it('answers the buffer with every default filled in', async () => {
      const created = await node.buffers.create(acme, bufferBody('defaults', 'p'))
      expect(created).to.deep.include({
        bufferId: 'defaults',
        customerId: 'acme',
        projectId: 'p',
        name: 'Orders',
        enabled: true,
        batch: { maxItems: 50, maxBytes: 262144, idleTimeoutMs: 5000, maxWaitFromFirstMs: 15000 },
        dlqPauseThreshold: 3,
        consecutiveDlqCount: 0,
        analytics: { sampleDeliveryLogs: 0.05 },
      })
      expect(created.createdAt).to.equal(created.updatedAt)
      expect(await node.buffers.read(acme, 'defaults')).to.deep.equal(created)
    })

    it('tells of a short secret when it is set, and not again', async () => {
      const told = (field: string) => ({ customerId: 'acme', bufferId: 'short', fields: [field] })
      const delivery = { url: 'https://example.com/hook', signing: { secret: 'short' } }
      await node.buffers.create(acme, bufferBody('short', 'p', { delivery }))
      await node.buffers.update(acme, 'short', { name: 'Other' })
      await node.buffers.update(acme, 'short', { sourceVerification: { signingSecret: 'brief' } })
      expect(node.shortSecrets.splice(0)).to.deep.equal([
        told('delivery.signing.secret'),
        told('sourceVerification.signingSecret'),
      ])
    })

    it('gives every secret and header back as it was sent', async () => {
      const delivery = {
        url: 'https://example.com/hook',
        headers: { authorization: 'Bearer abc', 'x-umlaut': 'ae:oe:' },
        signing: { type: 'hmac-sha256', secret: 'sign:ing"ü', header: 'x-sig' },
      }
      const sourceVerification = { enabled: true, signingSecret: 'source' }
      await node.buffers.create(acme, bufferBody('secretive', 'p', { delivery, sourceVerification }))
      const read = await node.buffers.read(acme, 'secretive')
      expect(read.delivery).to.deep.include(delivery)
      expect(read.sourceVerification).to.include(sourceVerification)
    })

    it('refuses, in this order: shape, foreign customer, project, taken id', async () => {
      const create = (body: object, who = acme) => refusal(node.buffers.create(who, body))
      expect(await create({ bufferId: 'x' })).to.deep.equal({
        status: 400,
        error: 'projectId is required; name is required; groupKey is required; delivery is required',
      })
      const foreign = await create(bufferBody('x', 'nowhere', { customerId: 'other' }))
      expect(foreign.status).to.equal(403)
      for (const projectId of ['nowhere', 'foreign']) {
        const refused = await create(bufferBody('x', projectId))
        expect(refused).to.deep.equal({ status: 400, error: 'Project not found' })
      }
      const blocked = await create(bufferBody('x', 'p', { delivery: { url: 'https://blocked.example' } }))
      expect(blocked).to.deep.equal({ status: 400, error: 'delivery.url is not allowed: it is blocked' })
      await node.buffers.create(acme, bufferBody('taken', 'p', { customerId: 'acme' }))
      expect((await create(bufferBody('taken', 'q'))).status).to.equal(409)
      expect((await create(bufferBody('taken', 'foreign'), other)).status).to.equal(409)
    })

    it('lets one of many win the same id', async () => {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 10 }, () => node.buffers.create(acme, bufferBody('contended', 'p'))),
      )
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1)
    })
  })

  describe('reading', () => {
    it('lists newest first, filtered by project, without the deleted ones', async () => {
      const lister = principal('lister')
      await node.customers.ensure('lister')
      for (const projectId of ['l1', 'l2']) await node.projects.create(lister, { projectId, name: 'x' })
      for (const [id, project] of [
        ['l-a', 'l1'],
        ['l-b', 'l2'],
        ['l-c', 'l1'],
        ['l-d', 'l1'],
      ] as const) {
        await node.buffers.create(lister, bufferBody(id, project))
      }
      await node.buffers.remove(lister, 'l-d')
      const ids = async (filter?: { projectId: string }, who = lister) =>
        (await node.buffers.list(who, filter)).map(({ bufferId }) => bufferId)
      expect(await ids()).to.deep.equal(['l-c', 'l-b', 'l-a'])
      expect(await ids({ projectId: 'l1' })).to.deep.equal(['l-c', 'l-a'])
      expect(await ids({ projectId: 'foreign' })).to.deep.equal([])
      expect(await ids(undefined, principal('lister', { projectIds: ['l2'] }))).to.deep.equal(['l-b'])
      expect(await ids({ projectId: 'l1' }, principal('lister', { projectIds: ['l2'] }))).to.deep.equal([])
    })

    it('shows the current count of dead-lettered batches, which no cached record needs to know', async () => {
      await node.buffers.create(acme, bufferBody('counted', 'p'))
      const { version } = await node.buffers.record(acme, 'counted')
      await node.db`UPDATE buffers SET consecutive_dlq_count = 2 WHERE buffer_id = 'counted'`
      expect((await node.buffers.read(acme, 'counted')).consecutiveDlqCount).to.equal(2)
      expect((await node.buffers.record(acme, 'counted')).version).to.equal(version)
    })

    it('hides what the caller does not reach, on every operation', async () => {
      await node.buffers.create(acme, bufferBody('hidden', 'p'))
      const scoped = principal('acme', { projectIds: ['q'] })
      for (const stranger of [other, scoped]) {
        expect((await refusal(node.buffers.read(stranger, 'hidden'))).status).to.equal(404)
        expect((await refusal(node.buffers.update(stranger, 'hidden', { name: 'x' }))).status).to.equal(404)
        expect((await refusal(node.buffers.remove(stranger, 'hidden'))).status).to.equal(404)
      }
      const created = await refusal(node.buffers.create(scoped, bufferBody('sneaky', 'p')))
      expect(created).to.deep.equal({ status: 400, error: 'Project not found' })
      expect((await node.buffers.read(acme, 'hidden')).name).to.equal('Orders')
      expect(await node.buffers.read(principal('acme', { projectIds: ['p'] }), 'hidden')).to.be.an('object')
    })
  })

  describe('change', () => {
    it('merges, keeps siblings and secrets, and counts the version up', async () => {
      const delivery = {
        url: 'https://example.com/hook',
        signing: { type: 'hmac-sha256', secret: 's3cret', header: 'x-sig' },
      }
      const created = await node.buffers.create(acme, bufferBody('patched', 'p', { delivery }))
      const { version } = await node.buffers.record(acme, 'patched')
      const patched = await node.buffers.update(acme, 'patched', {
        batch: { maxItems: 7 },
        delivery: { method: 'PUT' },
      })
      expect(patched.batch).to.deep.equal({ ...created.batch, maxItems: 7 })
      expect(patched.delivery).to.deep.equal({ ...created.delivery, method: 'PUT' })
      expect(patched.updatedAt).to.be.at.least(created.updatedAt)
      expect(await node.buffers.read(acme, 'patched')).to.deep.equal(patched)
      expect((await node.buffers.record(acme, 'patched')).version).to.equal(version + 1)
    })

    it('changes nothing when refused, and nothing when nothing changes', async () => {
      await node.buffers.create(acme, bufferBody('firm', 'p'))
      const stored = await node.buffers.record(acme, 'firm')
      const refused = await refusal(
        node.buffers.update(acme, 'firm', { name: 'new', batch: { maxItems: 0 } }),
      )
      expect(refused.status).to.equal(400)
      expect(refused.error).to.match(/^batch.maxItems /)
      await node.buffers.update(acme, 'firm', { name: 'Orders' })
      expect(await node.buffers.record(acme, 'firm')).to.deep.equal(stored)
      expect((await refusal(node.buffers.update(acme, 'no-such', { name: 'x' }))).status).to.equal(404)
    })

    it('loses none of many changes that arrive together', async () => {
      await node.buffers.create(acme, bufferBody('busy', 'p'))
      const patches = [
        { batch: { maxItems: 11 } },
        { batch: { maxBytes: 12_000 } },
        { batch: { idleTimeoutMs: 1_300 } },
        { delivery: { headers: { 'x-a': '1' } } },
        { delivery: { headers: { 'x-b': '2' } } },
        { throughput: { maxAttempts: 5 } },
        { name: 'Busy' },
      ]
      await Promise.all(patches.map((patch) => node.buffers.update(acme, 'busy', patch)))
      const { name, batch, delivery, throughput } = await node.buffers.read(acme, 'busy')
      expect(batch).to.include({ maxItems: 11, maxBytes: 12_000, idleTimeoutMs: 1_300 })
      expect(delivery.headers).to.deep.equal({ 'x-a': '1', 'x-b': '2' })
      expect({ name, maxAttempts: throughput.maxAttempts }).to.deep.equal({ name: 'Busy', maxAttempts: 5 })
    })

    it('resets the count when a disabled buffer is enabled, and only then', async () => {
      await node.buffers.create(acme, bufferBody('paused', 'p'))
      await pause('paused')
      expect(await node.buffers.update(acme, 'paused', { name: 'still' })).to.include({
        enabled: false,
        consecutiveDlqCount: 3,
      })
      expect(await node.buffers.update(acme, 'paused', { enabled: true })).to.include({
        enabled: true,
        consecutiveDlqCount: 0,
      })
      await node.db`UPDATE buffers SET consecutive_dlq_count = 1 WHERE buffer_id = 'paused'`
      expect(await node.buffers.update(acme, 'paused', { enabled: true, name: 'x' })).to.include({
        consecutiveDlqCount: 1,
      })
    })
  })

  describe('deletion', () => {
    it('hides the buffer, frees its id and starts anew under another uid', async () => {
      await node.buffers.create(acme, bufferBody('reborn', 'p', { name: 'first' }))
      const first = await node.buffers.record(acme, 'reborn')
      await node.buffers.remove(acme, 'reborn')
      expect((await refusal(node.buffers.read(acme, 'reborn'))).status).to.equal(404)
      expect((await refusal(node.buffers.update(acme, 'reborn', { name: 'x' }))).status).to.equal(404)
      expect((await refusal(node.buffers.remove(acme, 'reborn'))).status).to.equal(404)
      await node.buffers.create(acme, bufferBody('reborn', 'q', { name: 'second' }))
      const second = await node.buffers.record(acme, 'reborn')
      expect(second.uid).not.to.equal(first.uid)
      expect(second.buffer).to.include({ name: 'second', projectId: 'q' })
    })

    it('keeps the id for the customer, also when the row is removed', async () => {
      const create = (who: Principal, projectId: string) =>
        node.buffers.create(who, bufferBody('kept', projectId))
      await create(acme, 'p')
      const existing = await refusal(create(other, 'foreign'))
      expect(existing).to.deep.equal({ status: 409, error: 'Buffer already exists' })
      await node.buffers.remove(acme, 'kept')
      expect(await refusal(create(other, 'foreign'))).to.deep.equal(existing)
      await node.db`DELETE FROM buffers WHERE buffer_id = 'kept'`
      expect(await refusal(create(other, 'foreign'))).to.deep.equal(existing)
      expect(await create(acme, 'q')).to.include({ customerId: 'acme', projectId: 'q' })
    })

    it('takes no id with a creation that is refused', async () => {
      expect((await refusal(node.buffers.create(acme, bufferBody('untaken', 'nowhere')))).status).to.equal(
        400,
      )
      expect(await node.buffers.create(other, bufferBody('untaken', 'foreign'))).to.include({
        customerId: 'other',
      })
    })

    it('remembers whether the buffer was enabled: the shards discard what a disabled one holds', async () => {
      for (const [id, enabled] of [
        ['gone-on', true],
        ['gone-off', false],
      ] as const) {
        await node.buffers.create(acme, bufferBody(id, 'p'))
        if (!enabled) await pause(id)
        const { uid, version } = await node.buffers.record(acme, id)
        await node.buffers.remove(acme, id)
        const record = (await node.bufferCache.load(uid)) as BufferRecord
        expect(record).to.include({ deleted: true, version: version + 1 })
        expect(record.buffer.enabled).to.equal(enabled)
      }
    })
  })
})
