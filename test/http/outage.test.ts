import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { AuditPage } from '../../internal/audit/reading.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import { eventually } from '../support/eventually.ts'
import { ownPostgres } from '../support/servers.ts'
import { type Admin, type Answer, adminOf, bufferBody, call } from './caller.ts'
import { startService, type TestService } from './service.ts'

describe('while Postgres is away', () => {
  let postgres: Awaited<ReturnType<typeof ownPostgres>>
  let service: TestService
  let admin: Admin
  let key: string

  before(async function () {
    this.timeout(120_000)
    postgres = await ownPostgres()
    await migrate(postgres.url)
    service = await startService({ databaseUrl: postgres.url, patienceMs: 2_000 })
    key = await service.ownerKey('acme')
    admin = adminOf(service.url, key)
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    await admin.post('/v1/admin/buffers', bufferBody('orders', 'shop'))
    expect((await ingest('orders')).status).to.equal(202)
    await postgres.stop()
  })

  after(() => service.stop())

  function ingest(bufferId: string, headers: Record<string, string> = {}): Promise<Answer> {
    const body = '{"customer":"c"}'
    return call(`${service.url}/v1/ingest/shop/${bufferId}`, { method: 'POST', headers, body })
  }

  function isUnavailable({ status, json, headers, text }: Answer): void {
    expect(status, text).to.equal(503)
    expect(headers.get('retry-after')).to.equal('1')
    expect(json).to.have.keys('error')
    expect(text).not.to.match(/127\.0\.0\.1|postgres|ECONN/i)
  }

  it('ingest answers 503 for a cached buffer, stores nothing', async () => {
    isUnavailable(await ingest('orders'))
    expect(service.inbox.items).to.have.length(1)
    expect(service.told.unavailable).to.include('ledger')
  })

  it('ingest answers 503, not 404, for a buffer that is not cached', async () => {
    isUnavailable(await ingest('unknown'))
    expect(service.told.unavailable).to.include('buffers')
  })

  it('ingest answers 503, not 401, for a key that is not cached', async () => {
    isUnavailable(await ingest('orders', { 'x-api-key': `svk_${'a'.repeat(48)}` }))
    expect(service.told.unavailable).to.include('keys')
  })

  it('the management API answers 503 and health tells', async () => {
    isUnavailable(await admin.get('/v1/admin/credits'))
    const health = await call(`${service.url}/health`)
    expect([health.status, health.json]).to.deep.equal([
      503,
      { status: 'unavailable', version: '0.0.0', checks: { postgres: 'down' } },
    ])
    expect(service.told.failed).to.deep.equal([])
  })

  it('a change is answered 503 as fast as a read, and the audit has it afterwards', async () => {
    isUnavailable(await admin.patch('/v1/admin/projects/shop', { name: 'other' }))
    isUnavailable(await admin.delete('/v1/admin/subscription'))
    await postgres.restart()
    const records = await eventually(async () => {
      const { status, json } = await admin.get('/v1/admin/audit')
      expect(status).to.equal(200)
      const found = (json as AuditPage).records.filter(({ status }) => status !== 201)
      expect(found).to.have.length(2)
      return found.reverse()
    })
    expect(records[0]).to.deep.include({ method: 'PATCH', status: 503, target: { projectId: 'shop' } })
    expect(records[1]).to.deep.include({ route: '/v1/admin/subscription', status: 503 })
    expect(service.told.lost).to.deep.equal({})
  })

  it('all works again afterwards, and only what was accepted is paid', async () => {
    await eventually(async () => (await ingest('orders')).status === 202)
    const stored = service.inbox.items.length
    await eventually(async () => {
      const { json } = await admin.get('/v1/admin/credits')
      return (json as { credits: number }).credits === 100_000 - stored
    })
    const health = await call(`${service.url}/health`)
    expect([health.status, health.json]).to.deep.equal([
      200,
      { status: 'ok', version: '0.0.0', checks: { postgres: 'ok' } },
    ])
  })
})
