/** What a suspended account is answered (docs/decisions/0040-suspended-customers.md). */
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { createSuspensions } from '../../internal/accounts/suspensions.ts'
import { documentedTable } from '../../internal/http/openapi/document.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createSuspensionStore } from '../../internal/postgres/suspensions.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { eventually } from '../support/eventually.ts'
import { adminOf, bufferBody, call } from './caller.ts'
import { startService, type TestService } from './service.ts'
import { rules } from './tenancy/rules.ts'
import { World } from './tenancy/world.ts'

const REFUSAL = { error: 'Account is suspended', code: 'account_suspended' }
/** Changes that only end a right or a duty. */
const ENDS = ['revokeApiKey', 'cancelSubscription']
/** Reads that begin a purchase. */
const CHECKOUTS = ['readCreditPackCheckout', 'readPlanCheckout', 'readBillingPortal']

const suspend = (db: Database, customerId: string, suspended: boolean) =>
  createSuspensions(createSuspensionStore(db)).set(customerId, suspended)

describe('a suspended account in the management API', () => {
  let world: World
  before(async () => {
    world = await World.open({ feed: true })
  })
  afterEach(() => expect(world.failed).to.deep.equal([]))
  after(() => world.close())

  const owner = () => world.caller('own', 'owner')

  /** Known to the node. */
  async function become(suspended: boolean): Promise<void> {
    await suspend(world.db, 'acme', suspended)
    await eventually(async () => {
      const { status } = await world.ask(owner(), 'POST', '/v1/admin/projects', {})
      return status === (suspended ? 403 : 400)
    })
  }

  for (const row of documentedTable()) {
    const { operationId, method, path } = row
    const isRead = method === 'GET' && !CHECKOUTS.includes(operationId)
    const passes = isRead || ENDS.includes(operationId)
    it(`${passes ? 'may' : 'may not'} ${operationId}`, async () => {
      const rule = rules[operationId]!
      await become(false)
      const ids = await rule.target(world, 'lab', 'own')
      await become(true)
      const before = await world.everything()
      const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name]!)
      const query = new URLSearchParams(rule.query?.(ids, 'acme')).toString()
      const answer = await world.ask(owner(), method, `${url}?${query}`, rule.body?.(ids))
      expect(answer.status, answer.text).to.equal(passes ? rule.answers[0] : 403)
      if (!passes) expect(answer.json).to.deep.equal(REFUSAL)
      if (!passes || isRead) expect(await world.everything()).to.equal(before)
      else expect(await world.everything()).to.not.equal(before)
    })
  }

  it('may not with any other key of it either, and nobody else is refused', async () => {
    await become(true)
    for (const reach of ['own', 'inside'] as const) {
      const answer = await world.ask(world.caller(reach, 'admin'), 'DELETE', '/v1/admin/projects/none')
      expect([answer.status, answer.json]).to.deep.equal([403, REFUSAL])
    }
    const rival = await world.ask(world.caller('foreign', 'owner'), 'DELETE', '/v1/admin/projects/none')
    expect(rival.status).to.equal(404)
  })

  it('sees since when', async () => {
    await become(true)
    const read = async () => (await world.ask(owner(), 'GET', '/v1/admin/customers/acme')).json
    expect(await read())
      .to.have.property('suspendedAt')
      .that.is.within(Date.now() - 600_000, Date.now() + 1_000)
    await become(false)
    expect(await read()).to.not.have.property('suspendedAt')
  })
})

describe('a suspended account at ingest', () => {
  let service: TestService
  let key: string
  before(async () => {
    service = await startService({ feed: true })
    key = await service.ownerKey('acme')
    const admin = adminOf(service.url, key)
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    await admin.post('/v1/admin/buffers', bufferBody('orders', 'shop'))
    await admin.post('/v1/admin/buffers', bufferBody('off', 'shop', { enabled: false }))
    const other = adminOf(service.url, await service.ownerKey('other'))
    await other.post('/v1/admin/projects', { projectId: 'theirs', name: 'theirs' })
    await other.post('/v1/admin/buffers', bufferBody('others', 'theirs'))
  })
  afterEach(() => expect(service.told.failed).to.deep.equal([]))
  after(() => service.stop())

  const ingest = (path = 'shop/orders', headers: Record<string, string> = {}) =>
    call(`${service.url}/v1/ingest/${path}`, { method: 'POST', headers, body: '{"customer":"c"}' })
  const creditsOf = async () => (await adminOf(service.url, key).get('/v1/admin/credits')).json

  it('is refused with 403, charged nothing, and taken again after the resume', async () => {
    expect((await ingest()).status).to.equal(202)
    expect((await ingest('shop/off')).status).to.equal(400)
    const before = await creditsOf()
    await suspend(service.db, 'acme', true)
    await eventually(async () => (await ingest('shop/off')).status === 403)
    service.inbox.items.length = 0
    for (const headers of [{}, { 'x-api-key': key }]) {
      const { status, json } = await ingest('shop/orders', headers as Record<string, string>)
      expect([status, json]).to.deep.equal([403, REFUSAL])
    }
    expect([service.inbox.items, await creditsOf()]).to.deep.equal([[], before])
    expect((await ingest('theirs/others')).status).to.equal(202)
    await suspend(service.db, 'acme', false)
    await eventually(async () => (await ingest()).status === 202)
    await eventually(async () => (await ingest('shop/off')).status === 400)
  })

  it('is refused after the checks of project and key', async () => {
    await suspend(service.db, 'acme', true)
    await eventually(async () => (await ingest()).status === 403)
    expect((await ingest('shop/orders', { 'x-api-key': 'svk_no' })).status).to.equal(401)
    expect((await ingest('theirs/orders')).json)
      .to.have.property('error')
      .that.matches(/does not belong/)
    await suspend(service.db, 'acme', false)
    await eventually(async () => (await ingest()).status === 202)
  })
})

describe('a node that the change feed does not reach', () => {
  let aheadMs = 0
  let service: TestService
  before(async () => {
    const clock = systemClock()
    service = await startService({
      feed: false,
      clock: { ...clock, monotonic: () => clock.monotonic() + aheadMs, now: () => clock.now() + aheadMs },
    })
  })
  after(() => service.stop())

  it('hears of a suspension after a minute, from the rows themselves', async () => {
    const admin = adminOf(service.url, await service.ownerKey('acme'))
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    await admin.post('/v1/admin/buffers', bufferBody('orders', 'shop'))
    const answers = async () => {
      const init = { method: 'POST', body: '{"customer":"c"}' }
      const ingested = await call(`${service.url}/v1/ingest/shop/orders`, init)
      return [ingested.status, (await admin.post('/v1/admin/projects', {})).status]
    }
    expect(await answers()).to.deep.equal([202, 400])
    await suspend(service.db, 'acme', true)
    expect(await answers(), 'memory answers').to.deep.equal([202, 400])
    aheadMs = 61_000
    expect(await answers()).to.deep.equal([403, 403])
  })
})
