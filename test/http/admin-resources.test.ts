import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { ENTRIES_A_TURN } from '../../internal/runtime/turns.ts'
import { adminHarnessOfSuite, refuses } from './admin-harness.ts'
import { bufferBody } from './caller.ts'

const SOON = Date.now()

describe('resources of the management API', () => {
  const harness = adminHarnessOfSuite()

  describe('resources', () => {
    it('creates and reads customers', async () => {
      const made = await harness.owner.post('/v1/admin/customers', { customerId: 'sub', name: 'Sub' })
      expect(made.status).to.equal(201)
      expect(made.json).to.include({ customerId: 'sub', name: 'Sub', enabled: true, credits: 100_000 })
      expect((await harness.owner.get('/v1/admin/customers/sub')).json).to.deep.equal(made.json)
      expect((await harness.owner.get('/v1/admin/customers/acme')).status).to.equal(200)
      await refuses(harness.owner.post('/v1/admin/customers', { customerId: 'sub', name: 'Sub' }), 409)
      await refuses(harness.rival.get('/v1/admin/customers/sub'), 404)
      await refuses(harness.owner.get('/v1/admin/customers/rival'), 404)
    })

    it('creates, lists, reads, changes and deletes projects', async () => {
      const made = await harness.owner.post('/v1/admin/projects', {
        projectId: 'temp',
        name: 'Temp',
        customerId: 'acme',
      })
      expect(made.status).to.equal(201)
      expect(made.json).to.include({ projectId: 'temp', customerId: 'acme', name: 'Temp', enabled: true })
      expect((made.json as { createdAt: number }).createdAt).to.be.at.least(SOON - 60_000)
      const list = (await harness.viewer.get('/v1/admin/projects?customerId=acme')).json as {
        projectId: string
      }[]
      expect(list.map((project) => project.projectId)).to.deep.equal(['temp', 'lab', 'shop'])
      const changed = await harness.owner.patch('/v1/admin/projects/temp', { name: 'T', enabled: false })
      expect(changed.json).to.include({ name: 'T', enabled: false })
      expect((await harness.owner.get('/v1/admin/projects/temp')).json).to.deep.equal(changed.json)
      const sentBack = await harness.owner.patch('/v1/admin/projects/temp', {
        ...(changed.json as object),
        name: 'U',
      })
      expect(sentBack.json).to.include({ name: 'U', enabled: false })
      await refuses(
        harness.owner.patch('/v1/admin/projects/temp', { customerId: 'rival' }),
        400,
        /^customerId cannot/,
      )
      await refuses(
        harness.owner.patch('/v1/admin/projects/temp', { createdAt: 1 }),
        400,
        /^createdAt cannot/,
      )
      await refuses(harness.owner.patch('/v1/admin/projects/temp', { nam: 'V' }), 400, /nam/)
      expect((await harness.owner.get('/v1/admin/projects/temp')).json).to.deep.equal(sentBack.json)
      await refuses(harness.owner.delete('/v1/admin/projects/shop'), 400, /buffers/)
      const gone = await harness.owner.delete('/v1/admin/projects/temp')
      expect([gone.status, gone.text]).to.deep.equal([204, ''])
      await refuses(harness.owner.get('/v1/admin/projects/temp'), 404)
    })

    it('creates, lists, reads, changes and deletes buffers', async () => {
      const made = await harness.member.post('/v1/admin/buffers', bufferBody('temp', 'lab'))
      expect(made.status).to.equal(201)
      expect(made.json).to.nested.include({
        customerId: 'acme',
        'batch.maxItems': 50,
        consecutiveDlqCount: 0,
      })
      await refuses(harness.member.post('/v1/admin/buffers', bufferBody('temp', 'lab')), 409)
      await refuses(harness.member.post('/v1/admin/buffers', bufferBody('temp-2', 'none')), 400, /[Pp]roject/)
      await refuses(
        harness.member.post('/v1/admin/buffers', bufferBody('temp-2', 'rival')),
        400,
        /[Pp]roject/,
      )
      await refuses(harness.rival.post('/v1/admin/buffers', bufferBody('orders', 'rival')), 409)
      const ids = async (filter: string) => {
        const { json } = await harness.viewer.get(`/v1/admin/buffers?customerId=acme${filter}`)
        return (json as { bufferId: string }[]).map((buffer) => buffer.bufferId)
      }
      expect(await ids('')).to.deep.equal(['temp', 'orders'])
      expect(await ids('&projectId=lab')).to.deep.equal(['temp'])
      const changed = await harness.member.patch('/v1/admin/buffers/temp', { batch: { maxItems: 7 } })
      expect(changed.json).to.nested.include({ 'batch.maxItems': 7, 'batch.maxBytes': 262_144 })
      expect((await harness.member.get('/v1/admin/buffers/temp')).json).to.deep.equal(changed.json)
      expect((await harness.member.delete('/v1/admin/buffers/temp')).status).to.equal(204)
      await refuses(harness.member.get('/v1/admin/buffers/temp'), 404)
      await refuses(harness.member.delete('/v1/admin/buffers/temp'), 404)
    })

    it('answers a list of many buffers whole, as it answers each of them', async () => {
      const ids = Array.from({ length: 2 * ENTRIES_A_TURN + 1 }, (_, n) => `many-${n}`)
      const { owner } = harness
      await owner.post('/v1/admin/projects', { projectId: 'many', name: 'Many' })
      for (const id of ids) await owner.post('/v1/admin/buffers', bufferBody(id, 'many'))
      const list = await owner.get('/v1/admin/buffers?customerId=acme&projectId=many')
      expect(list.headers.get('content-type')).to.match(/^application\/json/)
      const buffers = list.json as { bufferId: string }[]
      expect(buffers.map(({ bufferId }) => bufferId)).to.deep.equal([...ids].reverse())
      for (const buffer of [buffers[0]!, buffers[ENTRIES_A_TURN]!]) {
        expect((await owner.get(`/v1/admin/buffers/${buffer.bufferId}`)).json).to.deep.equal(buffer)
      }
      for (const id of ids) await owner.delete(`/v1/admin/buffers/${id}`)
      expect((await owner.delete('/v1/admin/projects/many')).status).to.equal(204)
    })

    it('hides secrets from viewers only', async () => {
      for (const path of ['/v1/admin/buffers/orders', '/v1/admin/buffers?customerId=acme']) {
        expect((await harness.member.get(path)).text).to.include('"secret":"hush"')
        const { text } = await harness.viewer.get(path)
        expect(text).not.to.include('hush')
        expect(text.match(/\[redacted\]/g)).to.have.length(4)
      }
    })

    it('creates, lists and revokes API keys within the own reach', async () => {
      const made = await harness.owner.post('/v1/admin/api-keys', {
        name: 'k',
        role: 'viewer',
        projectIds: ['lab'],
      })
      expect(made.json).to.have.keys(
        'keyId',
        'name',
        'secret',
        'keyPrefix',
        'role',
        'projectIds',
        'createdAt',
      )
      const { keyId, secret, keyPrefix } = made.json as { keyId: string; secret: string; keyPrefix: string }
      expect(secret).to.match(/^svk_[0-9a-f]{48}$/)
      expect(keyPrefix).to.equal(secret.slice(0, 8))
      const list = await harness.viewer.get('/v1/admin/api-keys')
      expect(list.text).not.to.include(secret)
      expect((list.json as { keyId: string }[])[0]).to.include({
        keyId,
        customerId: 'acme',
        revokedAt: null,
        lastUsedAt: null,
      })
      await refuses(harness.scoped.post('/v1/admin/api-keys', { name: 'up', role: 'owner' }), 403)
      await refuses(harness.scoped.post('/v1/admin/api-keys', { name: 'wide', projectIds: ['shop'] }), 403)
      await refuses(harness.rival.delete(`/v1/admin/api-keys/${keyId}`), 404)
      expect((await harness.owner.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
    })

    it('answers and grants credits', async () => {
      const before = (await harness.viewer.get('/v1/admin/credits')).json as { credits: number }
      expect(before).to.have.keys(
        'customerId',
        'credits',
        'creditLimit',
        'creditsUsedThisMonth',
        'lastResetAt',
      )
      const granted = await harness.owner.post('/v1/admin/credits/add', { amount: 100_000 })
      expect([granted.status, granted.json]).to.deep.equal([
        200,
        { customerId: 'acme', creditsAdded: 100_000, newBalance: before.credits + 100_000 },
      ])
    })

    it('keeps a project-scoped key within its projects', async () => {
      const projects = (await harness.scoped.get('/v1/admin/projects?customerId=acme')).json as {
        projectId: string
      }[]
      expect(projects.map((project) => project.projectId)).to.deep.equal(['lab'])
      await refuses(harness.scoped.get('/v1/admin/projects/shop'), 404)
      await refuses(harness.scoped.get('/v1/admin/buffers/orders'), 404)
      await refuses(harness.scoped.patch('/v1/admin/buffers/orders', { name: 'x' }), 404)
      await refuses(harness.scoped.delete('/v1/admin/buffers/orders'), 404)
      await refuses(harness.scoped.post('/v1/admin/buffers', bufferBody('b', 'shop')), 400, /[Pp]roject/)
      expect((await harness.scoped.get('/v1/admin/buffers?customerId=acme')).json).to.deep.equal([])
    })

    it('shows nothing of another customer', async () => {
      for (const path of ['/v1/admin/projects/shop', '/v1/admin/buffers/orders']) {
        await refuses(harness.rival.get(path), 404)
        await refuses(harness.rival.patch(path, { name: 'mine' }), 404)
        await refuses(harness.rival.delete(path), 404)
      }
    })

    it('answers 404 for ids that can name nothing', async () => {
      const bad = ['a%2fb', '%2e%2e', 'a%00', '%zz', 'a%20b', 'x'.repeat(10_240), 'о%72ders']
      for (const id of bad) {
        for (const path of ['admin/projects', 'admin/buffers', 'admin/customers']) {
          await refuses(harness.owner.get(`/v1/${path}/${id}`), 404)
        }
        await refuses(harness.owner.delete(`/v1/admin/api-keys/${id}`), 404)
        await refuses(harness.owner.get(`/v1/dlq/${id}?customerId=acme`), 404)
      }
    })
  })

  describe('dead letters', () => {
    // Not as JSON.stringify would write it: the bytes are the sender's.
    const body =
      '{"svc":{"customerId":"acme","projectId":"shop","bufferId":"orders","groupKey":"k","groupHash":"g","segment":0},' +
      '"window":{"firstItemAt":1,"lastActivityAt":2,"itemsCount":1},' +
      '"items":[{"messageId":"m","receivedAt":1,"payload":1.50}]}'

    before(async () => {
      for (const [dlqId, customerId, stored] of [
        ['d1', 'acme', Buffer.from(body)],
        ['d2', 'acme', null],
        ['d3', 'rival', null],
      ] as const) {
        await harness.service
          .db`INSERT INTO dlq_items ${harness.service.db(deadLetter(dlqId, customerId, stored))}`
      }
    })

    function deadLetter(dlqId: string, customerId: string, stored: Buffer | null): Record<string, never> {
      const row = {
        dlq_id: dlqId,
        customer_id: customerId,
        project_id: 'shop',
        buffer_id: 'orders',
        buffer_uid: '00000000-0000-4000-8000-000000000000',
        group_id: `g-${dlqId}`,
        version: 1,
        group_key: 'k',
        reason: 'max_retries_exceeded',
        last_error: 'HTTP 500',
        last_status_code: 500,
        attempt: 2,
        item_count: 1,
        message_ids: ['m'],
        first_payload_preview: '1.50',
        segment: 0,
        first_item_at: 1,
        last_activity_at: 2,
        payload_bytes: 4,
        body: stored,
        body_sha256: createHash('sha256')
          .update(stored ?? '')
          .digest(),
        created_at: 3,
      }
      return row as unknown as Record<string, never>
    }

    it('lists, reads, answers the batch byte for byte and deletes', async () => {
      const list = await harness.viewer.get('/v1/dlq?customerId=acme&bufferId=orders')
      expect(list.status, list.text).to.equal(200)
      expect((list.json as { dlqId: string }[]).map((item) => item.dlqId)).to.have.members(['d1', 'd2'])
      const second = await harness.viewer.get('/v1/dlq?customerId=acme&bufferId=orders&cursor=3_d2')
      expect((second.json as { dlqId: string }[]).map((item) => item.dlqId)).to.deep.equal(['d1'])
      await refuses(harness.owner.get('/v1/dlq?customerId=acme&cursor=d2'), 400)
      expect((await harness.viewer.get('/v1/dlq/d1?customerId=acme')).json).to.include({
        dlqId: 'd1',
        attempt: 2,
      })
      const batch = await harness.viewer.get('/v1/dlq/d1/batch')
      expect([batch.status, batch.text]).to.deep.equal([200, body])
      expect(batch.headers.get('content-type')).to.match(/^application\/json/)
      const lost = await harness.viewer.get('/v1/dlq/d2/batch')
      expect(lost.json).to.include({ code: 'payload_unavailable' })
      expect(lost.status).to.equal(409)
      await refuses(harness.owner.get('/v1/dlq/d3?customerId=acme'), 403)
      await refuses(harness.owner.get('/v1/dlq/none?customerId=acme'), 404)
      await refuses(harness.owner.get('/v1/dlq?customerId=acme&bufferId=none'), 404)
      await refuses(harness.owner.delete('/v1/dlq/d3?customerId=acme'), 403)
      expect((await harness.owner.delete('/v1/dlq/d1?customerId=acme')).status).to.equal(204)
      await refuses(harness.owner.delete('/v1/dlq/d1?customerId=acme'), 404)
    })
  })
})
