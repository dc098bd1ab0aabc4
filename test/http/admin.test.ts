import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { type Admin, type Answer, adminOf, bufferBody, call } from './caller.ts'
import { startService, type TestService } from './service.ts'

const SOON = Date.now()

describe('the management API', () => {
  let service: TestService
  let owner: Admin
  let viewer: Admin
  let member: Admin
  let scoped: Admin
  let rival: Admin
  let ownerKey: string

  before(async () => {
    service = await startService()
    ownerKey = await service.ownerKey('acme')
    owner = adminOf(service.url, ownerKey)
    rival = adminOf(service.url, await service.ownerKey('rival'))
    expect((await owner.post('/v1/admin/projects', { projectId: 'shop', name: 'Shop' })).status).to.equal(201)
    expect((await owner.post('/v1/admin/projects', { projectId: 'lab', name: 'Lab' })).status).to.equal(201)
    expect((await rival.post('/v1/admin/projects', { projectId: 'rival', name: 'R' })).status).to.equal(201)
    viewer = await withKey({ name: 'viewer', role: 'viewer' })
    member = await withKey({ name: 'member', role: 'member' })
    scoped = await withKey({ name: 'scoped', role: 'admin', projectIds: ['lab'] })
    expect((await owner.post('/v1/admin/buffers', secretBuffer('orders'))).status).to.equal(201)
  })

  after(() => service.stop())
  afterEach(() => expect(service.told.failed).to.deep.equal([]))

  async function withKey(body: unknown): Promise<Admin> {
    const { status, json } = await owner.post('/v1/admin/api-keys', body)
    expect(status).to.equal(201)
    return adminOf(service.url, (json as { secret: string }).secret)
  }

  function secretBuffer(bufferId: string): unknown {
    return bufferBody(bufferId, 'shop', {
      delivery: {
        url: 'http://127.0.0.1:9/',
        headers: { authorization: 'Bearer hush' },
        signing: { secret: 'hush' },
      },
      sourceVerification: { enabled: false, signingSecret: 'hush' },
    })
  }

  async function refuses(answer: Promise<Answer>, status: number, error?: string | RegExp): Promise<void> {
    const { status: got, json, text, headers } = await answer
    expect(got, text).to.equal(status)
    expect(headers.get('content-type')).to.match(/^application\/json/)
    expect(json).to.have.property('error').that.is.a('string')
    if (error !== undefined) expect((json as { error: string }).error).to.match(new RegExp(error))
  }

  describe('credentials', () => {
    const path = '/v1/admin/credits'

    it('answers 401 without one', () => refuses(call(service.url + path), 401))

    it('answers 401 for a key that is none', async () => {
      const bad = [
        '',
        'svk_',
        `svk_${'0'.repeat(48)}`,
        ownerKey.slice(0, -1),
        `${ownerKey}0`,
        `svk_${ownerKey.slice(4).toUpperCase()}`,
        `${ownerKey},${ownerKey}`,
      ]
      for (const key of bad) {
        await refuses(adminOf(service.url, key).get(path), 401, /^Invalid or revoked API key$/)
      }
    })

    it('uses the key when an ID token stands beside it', async () => {
      const both = (key: string) =>
        call(service.url + path, { headers: { 'x-api-key': key, authorization: 'Bearer nonsense' } })
      expect((await both(ownerKey)).status).to.equal(200)
      await refuses(both('svk_none'), 401, /^Invalid or revoked API key$/)
    })

    it('answers 401 for other schemes and for tokens that are none', async () => {
      for (const authorization of ['Basic eDp5', 'Bearer', 'Bearer a b', ownerKey, 'Bearer nonsense']) {
        await refuses(call(service.url + path, { headers: { authorization } }), 401)
      }
    })

    it('stops a revoked key at once, and answers 409 when it is revoked again', async () => {
      const { json } = await owner.post('/v1/admin/api-keys', { name: 'short' })
      const { keyId, secret } = json as { keyId: string; secret: string }
      const short = adminOf(service.url, secret)
      expect((await short.get(path)).status).to.equal(200)
      expect((await owner.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
      await refuses(short.get(path), 401, /^Invalid or revoked API key$/)
      await refuses(owner.delete(`/v1/admin/api-keys/${keyId}`), 409)
    })
  })

  describe('order of checks', () => {
    it('asks for the credential, the role, the shape, existence, the state', async () => {
      const broken = '{'
      const none = adminOf(service.url, 'svk_none')
      await refuses(none.post('/v1/admin/projects', broken), 401)
      const denied = await member.post('/v1/admin/projects', broken)
      expect(denied.status).to.equal(403)
      expect(denied.json).to.have.property('message', 'Requires one of the following roles: admin, owner')
      await refuses(owner.post('/v1/admin/projects', broken), 400, /not valid JSON/)
      await refuses(owner.patch('/v1/admin/projects/none', { name: 1 }), 400, /^name/)
      await refuses(owner.patch('/v1/admin/projects/none', { name: 'n' }), 404)
      await refuses(owner.post('/v1/admin/projects', { projectId: 'shop', name: 'x' }), 409)
    })

    it('gives each action to its roles', async () => {
      const denials: [Admin, keyof Admin, string, string][] = [
        [viewer, 'post', '/v1/admin/buffers', 'member, admin, owner'],
        [viewer, 'patch', '/v1/admin/buffers/orders', 'member, admin, owner'],
        [viewer, 'delete', '/v1/admin/buffers/orders', 'member, admin, owner'],
        [member, 'delete', '/v1/admin/projects/shop', 'admin, owner'],
        [member, 'patch', '/v1/admin/projects/shop', 'admin, owner'],
        [member, 'post', '/v1/admin/api-keys', 'admin, owner'],
        [member, 'delete', '/v1/admin/api-keys/x', 'admin, owner'],
        [member, 'delete', '/v1/dlq/x?customerId=acme', 'admin, owner'],
        [member, 'post', '/v1/admin/credits/add', 'admin, owner'],
        [scoped, 'post', '/v1/admin/customers', 'owner'],
      ]
      for (const [who, method, path, roles] of denials) {
        const { status, json } = await who[method](path, method === 'delete' ? undefined : {})
        expect(status, `${method} ${path}`).to.equal(403)
        expect(json).to.have.property('message', `Requires one of the following roles: ${roles}`)
      }
    })
  })

  describe('shapes', () => {
    it('refuses bodies that are no JSON object', async () => {
      for (const body of [
        '',
        '{',
        'null',
        '[]',
        '1',
        '"x"',
        '\ufeff{}',
        `${'['.repeat(9000)}${']'.repeat(9000)}`,
      ]) {
        await refuses(owner.post('/v1/admin/projects', body), 400, /Request body/)
      }
      const deep = `{"name":"n","projectId":"p","x":${'{"a":'.repeat(70)}1${'}'.repeat(70)}}`
      await refuses(owner.post('/v1/admin/projects', deep), 400, /nested deeper/)
      await refuses(owner.patch('/v1/admin/buffers/orders', deep), 400, /nested deeper/)
    })

    it('names the field', async () => {
      const cases: [unknown, RegExp][] = [
        [{}, /^projectId is required/],
        [{ projectId: 'p' }, /^name is required/],
        [{ projectId: 'p', name: '' }, /^name/],
        [{ projectId: 'p', name: 'a\u0000b' }, /^name/],
        [{ projectId: 'p', name: 'a\ud800' }, /^name/],
        [{ projectId: 'p', name: null }, /^name/],
        [{ projectId: 1, name: 'n' }, /^projectId/],
        [{ projectId: 'a/b', name: 'n' }, /^projectId/],
        [{ projectId: '..', name: 'n' }, /^projectId/],
        [{ projectId: 'p'.repeat(129), name: 'n' }, /^projectId/],
        [{ projectId: 'p', name: 'n', colour: 1 }, /^colour/],
        ['{"projectId":"p","name":"n","__proto__":{}}', /^__proto__/],
      ]
      for (const [body, error] of cases) await refuses(owner.post('/v1/admin/projects', body), 400, error)
      await refuses(
        owner.post('/v1/admin/buffers', bufferBody('b', 'shop', { dlqPauseThreshold: 0 })),
        400,
        /^dlqPauseThreshold/,
      )
      await refuses(owner.post('/v1/admin/api-keys', { name: 'k', projectIds: [] }), 400, /^projectIds/)
      await refuses(owner.post('/v1/admin/api-keys', { name: 'k', projectIds: ['x y'] }), 400, /^projectIds/)
      await refuses(owner.post('/v1/admin/api-keys', { name: 'k'.repeat(101) }), 400, /^name/)
      await refuses(owner.post('/v1/admin/api-keys', { name: 'k', role: 'root' }), 400, /^role/)
      for (const amount of [0, -1, 100_001, 1.5, '5', null, undefined]) {
        await refuses(owner.post('/v1/admin/credits/add', { amount }), 400, /^amount/)
      }
    })

    it('refuses bodies over 1 MB and encoded ones', async () => {
      const big = JSON.stringify({ projectId: 'p', name: 'n'.repeat(1_000_001) })
      await refuses(owner.post('/v1/admin/projects', big), 413)
      const gzip = call(`${service.url}/v1/admin/projects`, {
        method: 'POST',
        headers: { 'x-api-key': ownerKey, 'content-encoding': 'gzip' },
        body: 'x',
      })
      await refuses(gzip, 415)
      expect((await owner.get('/v1/admin/credits')).status).to.equal(200)
    })

    it('refuses repeated query parameters and limits out of range', async () => {
      await refuses(owner.get('/v1/admin/projects?customerId=acme&customerId=acme'), 400, /customerId/)
      await refuses(owner.get('/v1/admin/projects?customerId=acme&x=1&x=2'), 400, /\bx\b/)
      for (const limit of ['0', '-1', '501', 'NaN', '1e2', '1.5', ' 1', '0x10', '99999999999999999999']) {
        await refuses(owner.get(`/v1/dlq?customerId=acme&limit=${encodeURIComponent(limit)}`), 400, /limit/)
      }
      for (const limit of ['1', '500', '']) {
        expect((await owner.get(`/v1/dlq?customerId=acme&limit=${limit}`)).status).to.equal(200)
      }
      await refuses(owner.get('/v1/admin/buffers?customerId=acme&projectId=%00'), 400, /projectId/)
    })
  })

  describe('customerId in queries', () => {
    const lists = ['/v1/admin/projects', '/v1/admin/buffers', '/v1/dlq', '/v1/dlq/none']
    const reads = [
      '/v1/admin/credits',
      '/v1/admin/api-keys',
      '/v1/admin/projects/shop',
      '/v1/admin/buffers/orders',
    ]

    it('must be given where the specification says so', async () => {
      for (const path of lists) {
        await refuses(owner.get(path), 400, /customerId/)
        await refuses(owner.get(`${path}?customerId=`), 400, /customerId/)
      }
      await refuses(owner.delete('/v1/dlq/none'), 400, /customerId/)
      for (const path of reads) expect((await owner.get(path)).status, path).to.equal(200)
      await refuses(owner.get('/v1/dlq/none/batch'), 404)
    })

    it('must be the own', async () => {
      for (const path of [...lists, ...reads, '/v1/dlq/none/batch']) {
        await refuses(owner.get(`${path}?customerId=rival`), 403)
      }
      await refuses(owner.delete('/v1/dlq/none?customerId=rival'), 403)
      await refuses(owner.post('/v1/admin/projects', { projectId: 'p', name: 'n', customerId: 'rival' }), 403)
    })
  })

  describe('resources', () => {
    it('creates and reads customers', async () => {
      const made = await owner.post('/v1/admin/customers', { customerId: 'sub', name: 'Sub' })
      expect(made.status).to.equal(201)
      expect(made.json).to.include({ customerId: 'sub', name: 'Sub', enabled: true, credits: 100_000 })
      expect((await owner.get('/v1/admin/customers/sub')).json).to.deep.equal(made.json)
      expect((await owner.get('/v1/admin/customers/acme')).status).to.equal(200)
      await refuses(owner.post('/v1/admin/customers', { customerId: 'sub', name: 'Sub' }), 409)
      await refuses(rival.get('/v1/admin/customers/sub'), 404)
      await refuses(owner.get('/v1/admin/customers/rival'), 404)
    })

    it('creates, lists, reads, changes and deletes projects', async () => {
      const made = await owner.post('/v1/admin/projects', {
        projectId: 'temp',
        name: 'Temp',
        customerId: 'acme',
      })
      expect(made.status).to.equal(201)
      expect(made.json).to.include({ projectId: 'temp', customerId: 'acme', name: 'Temp', enabled: true })
      expect((made.json as { createdAt: number }).createdAt).to.be.at.least(SOON - 60_000)
      const list = (await viewer.get('/v1/admin/projects?customerId=acme')).json as { projectId: string }[]
      expect(list.map((project) => project.projectId)).to.deep.equal(['temp', 'lab', 'shop'])
      const changed = await owner.patch('/v1/admin/projects/temp', { name: 'T', enabled: false })
      expect(changed.json).to.include({ name: 'T', enabled: false })
      expect((await owner.get('/v1/admin/projects/temp')).json).to.deep.equal(changed.json)
      await refuses(owner.delete('/v1/admin/projects/shop'), 400, /buffers/)
      const gone = await owner.delete('/v1/admin/projects/temp')
      expect([gone.status, gone.text]).to.deep.equal([204, ''])
      await refuses(owner.get('/v1/admin/projects/temp'), 404)
    })

    it('creates, lists, reads, changes and deletes buffers', async () => {
      const made = await member.post('/v1/admin/buffers', bufferBody('temp', 'lab'))
      expect(made.status).to.equal(201)
      expect(made.json).to.nested.include({
        customerId: 'acme',
        'batch.maxItems': 50,
        consecutiveDlqCount: 0,
      })
      await refuses(member.post('/v1/admin/buffers', bufferBody('temp', 'lab')), 409)
      await refuses(member.post('/v1/admin/buffers', bufferBody('temp-2', 'none')), 400, /[Pp]roject/)
      await refuses(member.post('/v1/admin/buffers', bufferBody('temp-2', 'rival')), 400, /[Pp]roject/)
      await refuses(rival.post('/v1/admin/buffers', bufferBody('orders', 'rival')), 409)
      const ids = async (filter: string) => {
        const { json } = await viewer.get(`/v1/admin/buffers?customerId=acme${filter}`)
        return (json as { bufferId: string }[]).map((buffer) => buffer.bufferId)
      }
      expect(await ids('')).to.deep.equal(['temp', 'orders'])
      expect(await ids('&projectId=lab')).to.deep.equal(['temp'])
      const changed = await member.patch('/v1/admin/buffers/temp', { batch: { maxItems: 7 } })
      expect(changed.json).to.nested.include({ 'batch.maxItems': 7, 'batch.maxBytes': 262_144 })
      expect((await member.get('/v1/admin/buffers/temp')).json).to.deep.equal(changed.json)
      expect((await member.delete('/v1/admin/buffers/temp')).status).to.equal(204)
      await refuses(member.get('/v1/admin/buffers/temp'), 404)
      await refuses(member.delete('/v1/admin/buffers/temp'), 404)
    })

    it('hides secrets from viewers only', async () => {
      for (const path of ['/v1/admin/buffers/orders', '/v1/admin/buffers?customerId=acme']) {
        expect((await member.get(path)).text).to.include('"secret":"hush"')
        const { text } = await viewer.get(path)
        expect(text).not.to.include('hush')
        expect(text.match(/\[redacted\]/g)).to.have.length(3)
      }
    })

    it('creates, lists and revokes API keys within the own reach', async () => {
      const made = await owner.post('/v1/admin/api-keys', { name: 'k', role: 'viewer', projectIds: ['lab'] })
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
      const list = await viewer.get('/v1/admin/api-keys')
      expect(list.text).not.to.include(secret)
      expect((list.json as { keyId: string }[])[0]).to.include({
        keyId,
        customerId: 'acme',
        revokedAt: null,
        lastUsedAt: null,
      })
      await refuses(scoped.post('/v1/admin/api-keys', { name: 'up', role: 'owner' }), 403)
      await refuses(scoped.post('/v1/admin/api-keys', { name: 'wide', projectIds: ['shop'] }), 403)
      await refuses(rival.delete(`/v1/admin/api-keys/${keyId}`), 404)
      expect((await owner.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
    })

    it('answers and grants credits', async () => {
      const before = (await viewer.get('/v1/admin/credits')).json as { credits: number }
      expect(before).to.have.keys(
        'customerId',
        'credits',
        'creditLimit',
        'creditsUsedThisMonth',
        'lastResetAt',
      )
      const granted = await owner.post('/v1/admin/credits/add', { amount: 100_000 })
      expect([granted.status, granted.json]).to.deep.equal([
        200,
        { customerId: 'acme', creditsAdded: 100_000, newBalance: before.credits + 100_000 },
      ])
    })

    it('keeps a project-scoped key within its projects', async () => {
      const projects = (await scoped.get('/v1/admin/projects?customerId=acme')).json as {
        projectId: string
      }[]
      expect(projects.map((project) => project.projectId)).to.deep.equal(['lab'])
      await refuses(scoped.get('/v1/admin/projects/shop'), 404)
      await refuses(scoped.get('/v1/admin/buffers/orders'), 404)
      await refuses(scoped.patch('/v1/admin/buffers/orders', { name: 'x' }), 404)
      await refuses(scoped.delete('/v1/admin/buffers/orders'), 404)
      await refuses(scoped.post('/v1/admin/buffers', bufferBody('b', 'shop')), 400, /[Pp]roject/)
      expect((await scoped.get('/v1/admin/buffers?customerId=acme')).json).to.deep.equal([])
    })

    it('shows nothing of another customer', async () => {
      for (const path of ['/v1/admin/projects/shop', '/v1/admin/buffers/orders']) {
        await refuses(rival.get(path), 404)
        await refuses(rival.patch(path, { name: 'mine' }), 404)
        await refuses(rival.delete(path), 404)
      }
    })

    it('answers 404 for ids that can name nothing', async () => {
      const bad = ['a%2fb', '%2e%2e', 'a%00', '%zz', 'a%20b', 'x'.repeat(10_240), 'о%72ders']
      for (const id of bad) {
        for (const path of ['admin/projects', 'admin/buffers', 'admin/customers']) {
          await refuses(owner.get(`/v1/${path}/${id}`), 404)
        }
        await refuses(owner.delete(`/v1/admin/api-keys/${id}`), 404)
        await refuses(owner.get(`/v1/dlq/${id}?customerId=acme`), 404)
      }
    })
  })

  describe('dead letters', () => {
    const body = '{"svc":{},"items":[{"payload":1.50}]}'

    before(async () => {
      for (const [dlqId, customerId, stored] of [
        ['d1', 'acme', Buffer.from(body)],
        ['d2', 'acme', null],
        ['d3', 'rival', null],
      ] as const) {
        await service.db`INSERT INTO dlq_items ${service.db(deadLetter(dlqId, customerId, stored))}`
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
        body_sha256: Buffer.alloc(32),
        created_at: 3,
      }
      return row as unknown as Record<string, never>
    }

    it('lists, reads, answers the batch byte for byte and deletes', async () => {
      const list = await viewer.get('/v1/dlq?customerId=acme&bufferId=orders')
      expect(list.status, list.text).to.equal(200)
      expect((list.json as { dlqId: string }[]).map((item) => item.dlqId)).to.have.members(['d1', 'd2'])
      expect((await viewer.get('/v1/dlq/d1?customerId=acme')).json).to.include({ dlqId: 'd1', attempt: 2 })
      const batch = await viewer.get('/v1/dlq/d1/batch')
      expect([batch.status, batch.text]).to.deep.equal([200, body])
      expect(batch.headers.get('content-type')).to.match(/^application\/json/)
      const lost = await viewer.get('/v1/dlq/d2/batch')
      expect(lost.json).to.include({ code: 'payload_unavailable' })
      expect(lost.status).to.equal(409)
      await refuses(owner.get('/v1/dlq/d3?customerId=acme'), 403)
      await refuses(owner.get('/v1/dlq/none?customerId=acme'), 404)
      await refuses(owner.get('/v1/dlq?customerId=acme&bufferId=none'), 404)
      await refuses(owner.delete('/v1/dlq/d3?customerId=acme'), 403)
      expect((await owner.delete('/v1/dlq/d1?customerId=acme')).status).to.equal(204)
      await refuses(owner.delete('/v1/dlq/d1?customerId=acme'), 404)
    })
  })

  describe('routes', () => {
    it('answers unknown ones with 404 in JSON', async () => {
      for (const path of [
        '/',
        '/v1',
        '/v1/admin',
        '/v2/admin/projects',
        '/v1/admin/projects/',
        '/V1/admin/projects',
        '//',
        '/%',
        '/v1/admin/projects/a/b',
      ]) {
        await refuses(owner.get(path), 404, /^Not found$/)
      }
    })

    it('answers methods that a path lacks with 405, and OPTIONS and HEAD', async () => {
      await refuses(owner.delete('/v1/admin/projects'), 405)
      const options = await call(`${service.url}/v1/admin/projects/shop`, { method: 'OPTIONS' })
      expect(options.status).to.equal(200)
      expect(options.headers.get('allow')!.split(', ')).to.have.members(['HEAD', 'GET', 'PATCH', 'DELETE'])
      const head = await call(`${service.url}/v1/admin/projects/shop`, {
        method: 'HEAD',
        headers: { 'x-api-key': ownerKey },
      })
      expect([head.status, head.text]).to.deep.equal([200, ''])
      expect(Number(head.headers.get('content-length'))).to.be.greaterThan(10)
    })

    it('carries a request id, the caller’s own when it is harmless', async () => {
      const ask = async (id?: string) => {
        const headers = { 'x-api-key': ownerKey, ...(id !== undefined && { 'x-request-id': id }) }
        return (await call(`${service.url}/v1/admin/credits`, { headers })).headers.get('x-request-id')
      }
      expect(await ask('abc-1')).to.equal('abc-1')
      expect(await ask()).to.match(/^[0-9a-f-]{36}$/)
      expect(await ask('a b"')).to.match(/^[0-9a-f-]{36}$/)
    })
  })
})
