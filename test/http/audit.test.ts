/** What the audit keeps of requests (docs/operations/audit.md), over HTTP and a real Postgres. */
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { createSuspensions } from '../../internal/accounts/suspensions.ts'
import type { AuditPage } from '../../internal/audit/reading.ts'
import type { AuditRecord } from '../../internal/domain/audit.ts'
import { documentedTable } from '../../internal/http/openapi/document.ts'
import type { Route } from '../../internal/http/routes/route.ts'
import { createSuspensionStore } from '../../internal/postgres/suspensions.ts'
import { eventually } from '../support/eventually.ts'
import { type Admin, adminOf, bufferBody, call } from './caller.ts'
import { RawClient } from './raw-client.ts'
import { startService, type TestService } from './service.ts'
import { rules } from './tenancy/rules.ts'
import { type Ids, World } from './tenancy/world.ts'

const AUDIT = '/v1/admin/audit'
const changes = documentedTable().filter(({ method }) => method !== 'GET')

/** Of the caller's audit once there are `count`: oldest first. */
async function recordsOf(admin: Admin, count: number, query = ''): Promise<AuditRecord[]> {
  return eventually(async () => {
    const { status, json, text } = await admin.get(`${AUDIT}?limit=100${query}`)
    expect(status, text).to.equal(200)
    const { records } = json as AuditPage
    expect(records.length, text).to.be.at.least(count)
    return records.reverse()
  })
}

describe('every change leaves a record', () => {
  let world: World
  before(async () => {
    world = await World.open()
  })
  after(() => world.close())

  function ask(row: Route, ids: Ids, caller: { customerId: string; key: string }) {
    const rule = rules[row.operationId]!
    const path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name]!)
    const query = new URLSearchParams(rule.query?.(ids, caller.customerId)).toString()
    return world.ask(caller, row.method, query === '' ? path : `${path}?${query}`, rule.body?.(ids))
  }

  it('there are such rows', () => expect(changes.length).to.be.at.least(15))

  for (const row of changes) {
    it(`${row.method} ${row.path}: by whom, what, and what came of it, also when it is refused`, async () => {
      const rule = rules[row.operationId]!
      const owner = world.caller('own', 'owner')
      const viewer = world.caller('own', 'viewer')
      const since = Date.now()
      const ids = await rule.target(world, 'lab', 'own')
      const done = await ask(row, ids, owner)
      expect(done.status, done.text).to.equal(rule.answers[0])
      // Records of one millisecond have no order.
      const answeredAt = Date.now()
      await eventually(() => Date.now() > answeredAt, { everyMs: 1 })
      const refused = await ask(row, ids, viewer)
      expect(refused.status).to.equal(403)
      const named = Object.fromEntries(
        [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, ids[name]]),
      )
      const found = await eventually(async () => {
        const { json } = await world.ask(owner, 'GET', `${AUDIT}?since=${since}&limit=100`)
        const all = (json as AuditPage).records.filter(
          ({ method, route }) => method === row.method && route === row.path,
        )
        expect(all).to.have.length(2)
        return all.reverse()
      })
      expect(found.map(({ status }) => status)).to.deep.equal([done.status, 403])
      for (const record of found) {
        expect(record).to.deep.include({ customerId: 'acme', event: 'change', count: 1 })
        expect(record.actor.type).to.equal('key')
        expect(record.from).to.deep.equal({ address: '127.0.0.1' })
        expect(record.target).to.include(named)
      }
      expect(found[0]!.actor.keyId).not.to.equal(found[1]!.actor.keyId)
    })
  }
})

describe('the audit of requests', () => {
  let service: TestService
  let owner: Admin
  let ownerKey: string
  let rival: Admin

  before(async () => {
    service = await startService()
    ownerKey = await service.ownerKey('acme')
    owner = adminOf(service.url, ownerKey)
    rival = adminOf(service.url, await service.ownerKey('rival'))
    await owner.post('/v1/admin/projects', { projectId: 'shop', name: 'Shop' })
    await recordsOf(owner, 1)
  })
  afterEach(() => expect(service.told.failed).to.deep.equal([]))
  after(() => service.stop())

  /** What `act` leaves for the owner: `count` records, oldest first. */
  async function leaves(count: number, act: () => Promise<unknown>): Promise<AuditRecord[]> {
    const before = Date.now()
    // What came before is older, although it may be written later.
    await eventually(() => Date.now() > before, { everyMs: 1 })
    const since = Date.now()
    await act()
    return recordsOf(owner, count, `&since=${since}`)
  }

  /** A key, its secret, and nothing else of it. */
  async function newKey(body: object): Promise<{ keyId: string; secret: string }> {
    const { status, json, text } = await owner.post('/v1/admin/api-keys', body)
    expect(status, text).to.equal(201)
    return json as { keyId: string; secret: string }
  }

  it('names what was created, and the copy of a clone', async () => {
    const records = await leaves(4, async () => {
      const { keyId } = await newKey({ name: 'k', role: 'viewer' })
      await owner.post('/v1/admin/buffers', bufferBody('orders', 'shop'))
      await owner.post('/v1/admin/buffers/orders/clone', {})
      await owner.delete(`/v1/admin/api-keys/${keyId}`)
    })
    const [key, buffer, clone, revocation] = records.map(({ target }) => target)
    expect(key!.keyId).to.be.a('string')
    expect(revocation).to.deep.equal({ keyId: key!.keyId })
    expect(buffer).to.deep.equal({ projectId: 'shop', bufferId: 'orders' })
    expect(clone).to.deep.equal({ projectId: 'shop', bufferId: 'orders', cloneId: 'orders-copy' })
  })

  it('keeps what was refused: shape, ownership, state, and bodies that are too large', async () => {
    const large = 'x'.repeat(1_000_001)
    const records = await leaves(6, async () => {
      await owner.post('/v1/admin/projects', { projectId: 'no/slash', name: 'x' })
      await owner.post('/v1/admin/projects', { projectId: 'shop', name: 'x' })
      await owner.delete('/v1/admin/buffers/nobodys')
      await owner.post('/v1/admin/projects', { projectId: 'other', name: 'x', customerId: 'rival' })
      await owner.post('/v1/admin/projects', large)
      await owner.delete(`/v1/admin/buffers/%00${'y'.repeat(500)}`)
    })
    expect(records.map(({ status }) => status)).to.deep.equal([400, 409, 404, 403, 413, 404])
    expect(records[3]!.target).to.deep.equal({ customerId: 'rival', projectId: 'other' })
    expect(records[5]!.target).to.deep.equal({ bufferId: `\ufffd${'y'.repeat(127)}` })
    expect(service.told.refused).to.include.members([400, 409, 404, 403, 413])
  })

  it('keeps what a suspended customer asks for, which may read it', async () => {
    const own = await startService({ feed: true })
    try {
      const suspended = adminOf(own.url, await own.ownerKey('acme'))
      await suspended.post('/v1/admin/projects', { projectId: 'shop', name: 'Shop' })
      await createSuspensions(createSuspensionStore(own.db)).set('acme', true)
      await eventually(async () => {
        expect((await suspended.delete('/v1/admin/projects/shop')).status).to.equal(403)
      })
      const records = await recordsOf(suspended, 2)
      expect(records.at(-1)).to.deep.include({ method: 'DELETE', status: 403, target: { projectId: 'shop' } })
    } finally {
      await own.stop()
    }
  })

  it('keeps no secret and no value of a body', async () => {
    await leaves(2, async () => {
      const secrets = { signing: { secret: 'hush' }, headers: { authorization: 'hush' } }
      const delivery = { url: 'http://127.0.0.1:9/hush', ...secrets }
      await owner.post('/v1/admin/buffers', bufferBody('quiet', 'shop', { name: 'hush', delivery }))
      await owner.patch('/v1/admin/buffers/quiet', { name: 'hush', bufferId: 7 })
    })
    const rows = JSON.stringify(await service.db`SELECT * FROM audit_records`)
    expect(rows).not.to.include('hush')
    expect(rows).not.to.include(ownerKey)
  })

  it('keeps the address of the connection, and beside it what the caller claims', async () => {
    const [record] = await leaves(1, () =>
      call(`${service.url}/v1/admin/projects/shop`, {
        method: 'PATCH',
        headers: { 'x-api-key': ownerKey, 'x-forwarded-for': `10.0.0.1, ${'9'.repeat(500)}` },
        body: '{}',
      }),
    )
    expect(record!.from).to.deep.equal({
      address: '127.0.0.1',
      forwardedFor: `10.0.0.1, ${'9'.repeat(190)}`,
    })
  })

  it('keeps nothing of a read, and nothing of a request whose body never came', async () => {
    const records = await leaves(1, async () => {
      await owner.get('/v1/admin/projects/shop')
      await owner.get('/v1/admin/projects/nothing')
      const client = await RawClient.open(service.port)
      const head = `POST /v1/admin/projects HTTP/1.1\r\nHost: x\r\nX-API-Key: ${ownerKey}\r\n`
      client.send(`${head}Content-Length: 99\r\nExpect: 100-continue\r\n\r\n`)
      client.answer().catch(() => {})
      // Now its body is being read.
      await eventually(() => client.interim === 1)
      client.socket.destroy()
      await owner.patch('/v1/admin/projects/shop', {})
    })
    expect(records.map(({ method }) => method)).to.deep.equal(['PATCH'])
  })

  it('keeps a revoked key for its customer, at both places, on reads too, and counts repetitions', async () => {
    await owner.post('/v1/admin/buffers', bufferBody('inbound', 'shop'))
    const { keyId, secret } = await newKey({ name: 'old', role: 'member' })
    expect((await owner.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
    const before = service.told.authentication.length
    const records = await leaves(2, async () => {
      for (let n = 0; n < 5; n++) {
        const read = await adminOf(service.url, secret).get('/v1/admin/credits')
        expect(read.status).to.equal(401)
        const sent = await call(`${service.url}/v1/ingest/shop/inbound`, {
          method: 'POST',
          headers: { 'x-api-key': secret },
          body: '{"customer":"c"}',
        })
        expect(sent.status).to.equal(401)
      }
    })
    expect(records).to.have.length(2)
    const common = { event: 'authentication_failed', actor: { type: 'key', keyId }, status: 401, count: 1 }
    const [management, ingest] = records
    expect(management).to.deep.include({ ...common, method: 'GET', route: '/v1/admin/credits', target: {} })
    expect(ingest).to.deep.include({
      ...common,
      method: 'POST',
      route: '/v1/ingest/{projectId}/{bufferId}',
      target: { projectId: 'shop', bufferId: 'inbound' },
      from: { address: '127.0.0.1' },
    })
    const told = service.told.authentication.slice(before)
    expect(told.filter((text) => text === 'management key')).to.have.length(5)
    expect(told.filter((text) => text === 'ingest key')).to.have.length(5)
  })

  it('keeps a key that is revoked while the body of its webhook is on its way', async () => {
    await owner.post('/v1/admin/buffers', bufferBody('late', 'shop'))
    const { keyId, secret } = await newKey({ name: 'late', role: 'member' })
    const [failure] = await leaves(2, async () => {
      const client = await RawClient.open(service.port)
      const head = `POST /v1/ingest/shop/late HTTP/1.1\r\nHost: x\r\nX-API-Key: ${secret}\r\n`
      client.send(`${head}Content-Length: 16\r\nExpect: 100-continue\r\n\r\n`)
      const answer = client.answer()
      await eventually(() => client.interim === 1)
      expect((await owner.delete(`/v1/admin/api-keys/${keyId}`)).status).to.equal(204)
      client.socket.write('{"customer":"c"}')
      expect((await answer).status).to.equal(401)
      client.socket.destroy()
    }).then((records) => records.filter(({ event }) => event === 'authentication_failed'))
    expect(failure).to.deep.include({ actor: { type: 'key', keyId }, status: 401 })
  })

  it('keeps credentials that are nobody’s as a metric alone', async () => {
    const before = service.told.authentication.length
    const records = await leaves(1, async () => {
      const unknown = `svk_${'0'.repeat(48)}`
      for (const headers of [{}, { authorization: 'Bearer x' }, { 'x-api-key': unknown }] as Record<
        string,
        string
      >[]) {
        const path = `${service.url}/v1/admin/projects/shop`
        expect((await call(path, { method: 'DELETE', headers })).status).to.equal(401)
      }
      await call(`${service.url}/v1/ingest/shop/inbound`, {
        method: 'POST',
        headers: { 'x-api-key': unknown },
        body: '{"customer":"c"}',
      })
      await owner.patch('/v1/admin/projects/shop', {})
    })
    expect(records.map(({ method }) => method)).to.deep.equal(['PATCH'])
    const told = service.told.authentication.slice(before)
    expect(told).to.deep.equal(['management none', 'management token', 'management key', 'ingest key'])
  })

  it('is read page by page, within a range, and by its own customer alone', async () => {
    const [oldest] = await leaves(5, async () => {
      for (let n = 0; n < 5; n++) await owner.patch('/v1/admin/projects/shop', {})
      await rival.post('/v1/admin/projects', { projectId: 'lab', name: 'Lab' })
    })
    const since = `since=${oldest!.createdAt}`
    const first = (await owner.get(`${AUDIT}?${since}&limit=3`)).json as AuditPage
    const further = `${since}&limit=3&cursor=${first.nextCursor}`
    const second = (await owner.get(`${AUDIT}?${further}`)).json as AuditPage
    expect([first.records.length, second.records.length, second.nextCursor]).to.deep.equal([3, 2, null])
    const moments = [...first.records, ...second.records].map(({ createdAt }) => createdAt)
    expect(moments).to.deep.equal(moments.toSorted((a, b) => b - a))
    const [newest] = moments
    const later = (await owner.get(`${AUDIT}?since=${newest! + 1}`)).json as AuditPage
    const earlier = (await owner.get(`${AUDIT}?${since}&until=${moments.at(-1)}`)).json as AuditPage
    expect([later.records, earlier.records]).to.deep.equal([[], []])
    const theirs = await recordsOf(rival, 1)
    expect(theirs.map(({ target }) => target)).to.deep.equal([{ projectId: 'lab' }])
    // Their cursor is a place and no key: it opens nothing.
    const cursor = `${theirs[0]!.createdAt + 1}_${theirs[0]!.auditId}`
    const { records } = (await owner.get(`${AUDIT}?cursor=${cursor}`)).json as AuditPage
    expect(new Set(records.map(({ customerId }) => customerId))).to.deep.equal(new Set(['acme']))
    expect((await owner.get(`${AUDIT}?customerId=rival`)).status).to.equal(403)
  })

  it('has 50 records in a page unless it is asked for 1 to 100, and refuses what is no place or moment', async () => {
    await service.db`INSERT INTO audit_records (customer_id, created_at, audit_id, event, actor, target, origin, count)
      SELECT 'acme', n, gen_random_uuid(), 'change', '{"type":"service"}', '{}', '{}', 1 FROM generate_series(1, 101) n`
    const lengthOf = async (query: string) =>
      ((await owner.get(`${AUDIT}${query}`)).json as AuditPage).records.length
    const lengths = [await lengthOf(''), await lengthOf('?limit=1'), await lengthOf('?limit=100')]
    expect(lengths).to.deep.equal([50, 1, 100])
    for (const [query, error] of [
      ['limit=101', 'limit must be an integer from 1 to 100'],
      ['limit=0', 'limit must be an integer from 1 to 100'],
      ['since=-1', 'since must be an integer from 0 to 999999999999999'],
      ['until=2026-01-01T00:00:00Z', 'until must be an integer from 0 to 999999999999999'],
      ['cursor=12', 'cursor must be the nextCursor of a page'],
    ]) {
      const { status, json } = await owner.get(`${AUDIT}?${query}`)
      expect([status, json], query).to.deep.equal([400, { error }])
    }
  })

  it('is for admins and owners, and for no key that is limited to projects', async () => {
    for (const [role, status] of [
      ['viewer', 403],
      ['member', 403],
      ['admin', 200],
    ] as const) {
      const { secret } = await newKey({ name: role, role })
      expect((await adminOf(service.url, secret).get(AUDIT)).status, role).to.equal(status)
    }
    const { secret } = await newKey({ name: 'scoped', role: 'admin', projectIds: ['shop'] })
    const { status, json } = await adminOf(service.url, secret).get(AUDIT)
    expect([status, json]).to.deep.equal([403, { error: 'A project-scoped key cannot read the audit' }])
  })
})

describe('a customer that makes more records than are kept', () => {
  it('has the first of them, loses the others by metric, and takes none of another’s', async () => {
    const few = { burst: 3, perMinute: 1 }
    const service = await startService({ allowances: { changes: few, refusals: few } })
    try {
      const owner = adminOf(service.url, await service.ownerKey('acme'))
      const rival = adminOf(service.url, await service.ownerKey('rival'))
      for (let n = 0; n < 10; n++) expect((await owner.delete('/v1/admin/buffers/none')).status).to.equal(404)
      for (let n = 0; n < 2; n++) {
        const body = { projectId: `p${n}`, name: 'P' }
        expect((await owner.post('/v1/admin/projects', body)).status).to.equal(201)
      }
      await rival.delete('/v1/admin/buffers/none')
      expect((await recordsOf(owner, 5)).map(({ status }) => status)).to.deep.equal([404, 404, 404, 201, 201])
      await recordsOf(rival, 1)
      expect(service.told.lost).to.deep.equal({ limit: 7 })
    } finally {
      await service.stop()
    }
  })
})

describe('an audit that cannot be written', () => {
  it('makes no request wait, and none fail', async () => {
    let asked = 0
    const service = await startService({
      auditStore: {
        insert() {
          asked++
          return new Promise(() => {})
        },
      },
    })
    try {
      const owner = adminOf(service.url, await service.ownerKey('acme'))
      for (let n = 0; n < 20; n++) {
        const { status } = await owner.post('/v1/admin/projects', { projectId: `p${n}`, name: 'P' })
        expect(status).to.equal(201)
      }
      await eventually(() => asked === 1)
      expect((await owner.delete('/v1/admin/projects/p0')).status).to.equal(204)
      await setImmediate()
      expect(service.told.failed).to.deep.equal([])
    } finally {
      await service.stop()
    }
    expect(service.told.lost, 'and is told when the process ends').to.deep.equal({ stopped: 21 })
  })
})
