import { expect } from 'chai'
import { describe, it } from 'mocha'
import { adminHarnessOfSuite, refuses } from './admin-harness.ts'
import { type Admin, adminOf, bufferBody, call } from './caller.ts'
import { type RawAnswer, RawClient } from './raw-client.ts'

describe('requests to the management API', () => {
  const harness = adminHarnessOfSuite()

  describe('credentials', () => {
    const path = '/v1/admin/credits'

    it('answers 401 without one', () => refuses(call(harness.service.url + path), 401))

    it('answers 401 for a key that is none', async () => {
      const bad = [
        '',
        'svk_',
        `svk_${'0'.repeat(48)}`,
        harness.ownerKey.slice(0, -1),
        `${harness.ownerKey}0`,
        `svk_${harness.ownerKey.slice(4).toUpperCase()}`,
        `${harness.ownerKey},${harness.ownerKey}`,
      ]
      for (const key of bad) {
        await refuses(adminOf(harness.service.url, key).get(path), 401, /^Invalid or revoked API key$/)
      }
    })

    it('says with each of them how one may identify oneself', async () => {
      const url = harness.service.url + path
      const none = await call(url)
      const wrong = await call(url, { headers: { 'x-api-key': 'svk_none' } })
      const nonsense = await call(url, { headers: { authorization: 'Bearer nonsense' } })
      for (const { status, headers } of [none, wrong, nonsense]) {
        expect([status, headers.get('www-authenticate')]).to.deep.equal([401, 'Bearer realm="penstock"'])
      }
      expect((await harness.owner.get(path)).headers.get('www-authenticate')).to.equal(null)
    })

    it('uses the key when an ID token stands beside it', async () => {
      const both = (key: string) =>
        call(harness.service.url + path, { headers: { 'x-api-key': key, authorization: 'Bearer nonsense' } })
      expect((await both(harness.ownerKey)).status).to.equal(200)
      await refuses(both('svk_none'), 401, /^Invalid or revoked API key$/)
    })

    it('answers 401 for other schemes and for tokens that are none', async () => {
      for (const authorization of [
        'Basic eDp5',
        'Bearer',
        'Bearer a b',
        harness.ownerKey,
        'Bearer nonsense',
      ]) {
        await refuses(call(harness.service.url + path, { headers: { authorization } }), 401)
      }
    })

    it('stops a revoked key at once, and answers 409 when it is revoked again', async () => {
      const { json } = await harness.owner.post('/v1/admin/api-keys', { name: 'short' })
      const { keyId, secret } = json as { keyId: string; secret: string }
      const short = adminOf(harness.service.url, secret)
      expect((await short.get(path)).status).to.equal(200)
      expect((await harness.owner.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
      await refuses(short.get(path), 401, /^Invalid or revoked API key$/)
      await refuses(harness.owner.delete(`/v1/admin/api-keys/${keyId}`), 409)
    })
  })

  describe('order of checks', () => {
    it('asks for the credential, the role, the shape, existence, the state', async () => {
      const broken = '{'
      const none = adminOf(harness.service.url, 'svk_none')
      await refuses(none.post('/v1/admin/projects', broken), 401)
      const denied = await harness.member.post('/v1/admin/projects', broken)
      expect(denied.status).to.equal(403)
      expect(denied.json).to.have.property('message', 'Requires one of the following roles: admin, owner')
      await refuses(harness.owner.post('/v1/admin/projects', broken), 400, /not valid JSON/)
      await refuses(harness.owner.patch('/v1/admin/projects/none', { name: 1 }), 400, /^name/)
      await refuses(harness.owner.patch('/v1/admin/projects/none', { name: 'n' }), 404)
      await refuses(harness.owner.post('/v1/admin/projects', { projectId: 'shop', name: 'x' }), 409)
    })

    it('gives each action to its roles', async () => {
      const denials: [Admin, keyof Admin, string, string][] = [
        [harness.viewer, 'post', '/v1/admin/buffers', 'member, admin, owner'],
        [harness.viewer, 'patch', '/v1/admin/buffers/orders', 'member, admin, owner'],
        [harness.viewer, 'delete', '/v1/admin/buffers/orders', 'member, admin, owner'],
        [harness.member, 'delete', '/v1/admin/projects/shop', 'admin, owner'],
        [harness.member, 'patch', '/v1/admin/projects/shop', 'admin, owner'],
        [harness.member, 'post', '/v1/admin/api-keys', 'admin, owner'],
        [harness.member, 'delete', '/v1/admin/api-keys/x', 'admin, owner'],
        [harness.member, 'delete', '/v1/dlq/x?customerId=acme', 'admin, owner'],
        [harness.member, 'post', '/v1/admin/credits/add', 'admin, owner'],
        [harness.scoped, 'post', '/v1/admin/customers', 'owner'],
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
        await refuses(harness.owner.post('/v1/admin/projects', body), 400, /Request body/)
      }
      const deep = `{"name":"n","projectId":"p","x":${'{"a":'.repeat(70)}1${'}'.repeat(70)}}`
      await refuses(harness.owner.post('/v1/admin/projects', deep), 400, /nested more than 64 levels deep/)
      await refuses(
        harness.owner.patch('/v1/admin/buffers/orders', deep),
        400,
        /nested more than 64 levels deep/,
      )
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
      for (const [body, error] of cases)
        await refuses(harness.owner.post('/v1/admin/projects', body), 400, error)
      await refuses(
        harness.owner.post('/v1/admin/buffers', bufferBody('b', 'shop', { dlqPauseThreshold: 0 })),
        400,
        /^dlqPauseThreshold/,
      )
      await refuses(
        harness.owner.post('/v1/admin/api-keys', { name: 'k', projectIds: [] }),
        400,
        /^projectIds/,
      )
      await refuses(
        harness.owner.post('/v1/admin/api-keys', { name: 'k', projectIds: ['x y'] }),
        400,
        /^projectIds/,
      )
      await refuses(harness.owner.post('/v1/admin/api-keys', { name: 'k'.repeat(101) }), 400, /^name/)
      await refuses(harness.owner.post('/v1/admin/api-keys', { name: 'k', role: 'root' }), 400, /^role/)
      for (const amount of [0, -1, 100_001, 1.5, '5', null, undefined]) {
        await refuses(harness.owner.post('/v1/admin/credits/add', { amount }), 400, /^amount/)
      }
    })

    it('refuses bodies over 1 MB and encoded ones', async () => {
      const big = JSON.stringify({ projectId: 'p', name: 'n'.repeat(1_000_001) })
      await refuses(harness.owner.post('/v1/admin/projects', big), 413)
      const gzip = call(`${harness.service.url}/v1/admin/projects`, {
        method: 'POST',
        headers: { 'x-api-key': harness.ownerKey, 'content-encoding': 'gzip' },
        body: 'x',
      })
      await refuses(gzip, 415)
      expect((await harness.owner.get('/v1/admin/credits')).status).to.equal(200)
    })

    it('refuses query parameters that the endpoint does not know, each by its name', async () => {
      const list = '/v1/admin/projects?customerId=acme'
      await refuses(harness.owner.get(`${list}&page=2`), 400, /^Query parameter page is not known$/)
      await refuses(
        harness.owner.get(`${list}&x=1&x=2&=3`),
        400,
        /parameter x is not known; .*"" is not known$/,
      )
      await refuses(harness.owner.get(`${list}&CustomerId=acme&__proto__=1`), 400, /CustomerId.*__proto__/)
      await refuses(harness.owner.delete('/v1/admin/projects/lab?force=true'), 400, /force/)
      expect((await harness.owner.get('/v1/admin/projects/lab')).status).to.equal(200)
    })

    it('refuses repeated query parameters and limits out of range', async () => {
      await refuses(
        harness.owner.get('/v1/admin/projects?customerId=acme&customerId=acme'),
        400,
        /^Query parameter customerId must be given once$/,
      )
      for (const limit of ['0', '-1', '501', 'NaN', '1e2', '1.5', ' 1', '0x10', '99999999999999999999', '']) {
        await refuses(
          harness.owner.get(`/v1/dlq?customerId=acme&limit=${encodeURIComponent(limit)}`),
          400,
          /limit/,
        )
      }
      for (const limit of ['1', '500']) {
        expect((await harness.owner.get(`/v1/dlq?customerId=acme&limit=${limit}`)).status).to.equal(200)
      }
      await refuses(harness.owner.get('/v1/admin/buffers?customerId=acme&projectId=%00'), 400, /projectId/)
    })
  })

  async function ask(bytes: string): Promise<RawAnswer> {
    const client = await RawClient.open(harness.service.port)
    client.send(bytes)
    return client.answer().finally(() => client.close())
  }

  describe('customerId in queries', () => {
    const lists = ['/v1/admin/projects', '/v1/admin/buffers', '/v1/dlq', '/v1/dlq/none']
    const reads = [
      '/v1/admin/credits',
      '/v1/admin/api-keys',
      '/v1/admin/projects/shop',
      '/v1/admin/buffers/orders',
    ]

    it('must be given where the reference says so', async () => {
      for (const path of lists) {
        await refuses(harness.owner.get(path), 400, /customerId/)
        await refuses(harness.owner.get(`${path}?customerId=`), 400, /customerId/)
      }
      await refuses(harness.owner.delete('/v1/dlq/none'), 400, /customerId/)
      for (const path of reads) expect((await harness.owner.get(path)).status, path).to.equal(200)
      await refuses(harness.owner.get('/v1/dlq/none/batch'), 404)
    })

    it('must be the own', async () => {
      for (const path of [...lists, ...reads, '/v1/dlq/none/batch']) {
        await refuses(harness.owner.get(`${path}?customerId=rival`), 403)
      }
      await refuses(harness.owner.delete('/v1/admin/projects/lab?customerId=rival'), 403)
      const own = '/v1/admin/projects/lab?customerId=acme'
      expect((await harness.owner.patch(own, { enabled: true })).status).to.equal(200)
      await refuses(harness.owner.delete('/v1/dlq/none?customerId=rival'), 403)
      await refuses(
        harness.owner.post('/v1/admin/projects', { projectId: 'p', name: 'n', customerId: 'rival' }),
        403,
      )
    })
  })

  describe('routes', () => {
    it('answers unknown ones with 404 in JSON', async () => {
      for (const path of [
        '/v1',
        '/v1/admin',
        '/v2/admin/projects',
        '/v1/admin/projects/',
        '/V1/admin/projects',
        '//',
        '/%',
        '/v1/admin/projects/a/b',
      ]) {
        await refuses(harness.owner.get(path), 404, /^Not found$/)
      }
    })

    it('answers methods that a path lacks with 405, and OPTIONS and HEAD', async () => {
      await refuses(harness.owner.delete('/v1/admin/projects'), 405)
      const options = await call(`${harness.service.url}/v1/admin/projects/shop`, { method: 'OPTIONS' })
      expect(options.status).to.equal(200)
      expect(options.headers.get('allow')!.split(', ')).to.have.members(['HEAD', 'GET', 'PATCH', 'DELETE'])
      const head = await call(`${harness.service.url}/v1/admin/projects/shop`, {
        method: 'HEAD',
        headers: { 'x-api-key': harness.ownerKey },
      })
      expect([head.status, head.text]).to.deep.equal([200, ''])
      expect(Number(head.headers.get('content-length'))).to.be.greaterThan(10)
    })

    it('answers methods that no endpoint has as one that the path lacks', async () => {
      for (const [path, allow] of [
        ['/v1/admin/projects/shop', ['HEAD', 'GET', 'PATCH', 'DELETE']],
        ['/v1/ingest/shop/orders', ['POST', 'OPTIONS']],
        ['/', ['GET', 'HEAD', 'OPTIONS']],
      ] as const) {
        for (const method of ['TRACE', 'PROPFIND', 'PUT']) {
          const answer = await ask(`${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
          expect(answer.status, `${method} ${path}`).to.equal(405)
          expect(answer.headers.get('allow')?.split(', ')).to.have.members([...allow])
        }
      }
      expect((await ask('TRACE /none HTTP/1.1\r\nHost: x\r\n\r\n')).status).to.equal(404)
      expect((await ask('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n')).headers.get('allow')).to.equal('')
    })

    it('tells at / what answers, and where to go', async () => {
      const { status, body } = await ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      expect(status).to.equal(200)
      const entry = JSON.parse(body) as { links: Record<string, string> }
      expect(entry).to.deep.include({ service: 'Penstock', version: '0.0.0' })
      const { links } = entry
      expect(links).to.have.all.keys('health', 'ingest', 'docs', 'openapi', 'whoami')
      for (const name of ['health', 'docs', 'openapi'])
        expect((await call(harness.service.url + links[name])).status, name).to.equal(200)
      expect((await harness.scoped.get(links.whoami!)).json).to.deep.include({ role: 'admin' })
    })

    it('tells a credential whom it stands for', async () => {
      const whoAmI = async (caller: Admin) => (await caller.get('/v1/admin/whoami')).json
      const { credits } = (await harness.owner.get('/v1/admin/credits')).json as { credits: number }
      const acme = { customerId: 'acme', credits }
      expect(await whoAmI(harness.owner)).to.deep.equal({ ...acme, role: 'owner', projects: null })
      expect(await whoAmI(harness.viewer)).to.deep.equal({ ...acme, role: 'viewer', projects: null })
      expect(await whoAmI(harness.scoped)).to.deep.equal({ ...acme, role: 'admin', projects: ['lab'] })
      await refuses(call(`${harness.service.url}/v1/admin/whoami`), 401)
    })

    it('carries a request id, the caller’s own when it is harmless', async () => {
      const ask = async (id?: string) => {
        const headers = { 'x-api-key': harness.ownerKey, ...(id !== undefined && { 'x-request-id': id }) }
        return (await call(`${harness.service.url}/v1/admin/credits`, { headers })).headers.get(
          'x-request-id',
        )
      }
      expect(await ask('abc-1')).to.equal('abc-1')
      expect(await ask()).to.match(/^[0-9a-f-]{36}$/)
      expect(await ask('a b"')).to.match(/^[0-9a-f-]{36}$/)
    })
  })
})
