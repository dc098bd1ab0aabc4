/** What one tenant may ask of the management API, and have (docs/reference/api.md, "Limits"). */
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'

import type { LimitSettings } from '../../cmd/wiring/limits.ts'
import { IDS_RATIO } from '../../internal/postgres/caps.ts'
import { connect } from '../../internal/postgres/connection.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { eventually } from '../support/eventually.ts'
import { type Admin, type Answer, adminOf, bufferBody } from './caller.ts'
import { startService, type TestService } from './service.ts'

const PROJECT = { projectId: 'p', name: 'p' }

describe('limits of a tenant', () => {
  let service: TestService
  /** Of the limits alone. */
  const clock = new ManualClock()

  afterEach(() => service.stop())

  async function serviceWith(limits: Partial<LimitSettings>): Promise<void> {
    service = await startService({ limits, limitsClock: clock })
  }

  const owner = async (customerId: string): Promise<Admin> =>
    adminOf(service.url, await service.ownerKey(customerId))

  describe('requests of a key', () => {
    it('beyond its rate are answered 429 with Retry-After, whatever they ask, until tokens come', async () => {
      await serviceWith({ keyRequestsPerSecond: 2 })
      const acme = await owner('acme')
      const credits = () => acme.get('/v1/admin/credits')
      for (let n = 0; n < 4; n++) expect((await credits()).status).to.equal(200)
      for (const request of [
        credits,
        () => acme.post('/v1/admin/projects', PROJECT),
        () => acme.post('/v1/admin/projects', 'no JSON'),
        () => acme.delete('/v1/admin/projects/p'),
      ]) {
        const refused = await request()
        expectLimited(refused, 'Too many requests of this API key or account, try again later', '1')
      }
      expect(service.told.limited).to.deep.equal(['key', 'key', 'key', 'key'])
      clock.advance(500)
      expect((await acme.post('/v1/admin/projects', PROJECT)).status).to.equal(201)
      expect((await credits()).status).to.equal(429)
    })

    it('that are refused together are not answered together', async () => {
      const pauses: number[] = []
      const system = systemClock()
      const recording: Clock = {
        ...system,
        after(ms, task) {
          pauses.push(ms)
          return system.after(ms, task)
        },
      }
      const fractions = [0, 0.5, 0.998]
      service = await startService({
        limits: { keyRequestsPerSecond: 1 },
        limitsClock: clock,
        clock: recording,
        fraction: () => fractions.shift()!,
      })
      const acme = await owner('acme')
      const credits = () => acme.get('/v1/admin/credits')
      for (let n = 0; n < 2; n++) expect((await credits()).status).to.equal(200)
      pauses.length = 0
      const refused = await Promise.all([credits(), credits(), credits()])
      expect(refused.map(({ status }) => status)).to.deep.equal([429, 429, 429])
      expect(pauses).to.include.members([250, 500, 749])
    })

    it('take nothing from another customer, nor from its webhooks', async () => {
      await serviceWith({ keyRequestsPerSecond: 1 })
      const [acme, other] = [await owner('acme'), await owner('other')]
      for (let n = 0; n < 2; n++) await acme.get('/v1/admin/credits')
      expect((await acme.get('/v1/admin/credits')).status).to.equal(429)
      expect((await other.post('/v1/admin/projects', PROJECT)).status).to.equal(201)
      expect((await other.post('/v1/admin/buffers', bufferBody('b', 'p'))).status).to.equal(201)
      for (let n = 0; n < 10; n++) {
        const init = { method: 'POST', body: '{"customer":"c"}' }
        expect((await fetch(`${service.url}/v1/ingest/p/b`, init)).status).to.equal(202)
      }
    })

    it('count for all keys of their customer together, too', async () => {
      await serviceWith({ keyRequestsPerSecond: 2 })
      const keys = await Promise.all(Array.from({ length: 5 }, () => owner('acme')))
      let taken = 0
      for (const key of keys) {
        for (let n = 0; n < 2; n++) if ((await key.get('/v1/admin/credits')).status === 200) taken++
      }
      expect(taken, 'twice the burst of one').to.equal(8)
      expect(service.told.limited).to.deep.equal(['customer', 'customer'])
      expect((await (await owner('other')).get('/v1/admin/credits')).status).to.equal(200)
    })

    it('that ask the payment provider are fewer, for its limit is one of all customers', async () => {
      await serviceWith({ keyRequestsPerSecond: 1_000 })
      const [acme, other] = [await owner('acme'), await owner('other')]
      const portal = (caller: Admin) => caller.get('/v1/admin/subscription/portal-url')
      const { status } = await portal(acme)
      expect(status).to.equal(503)
      for (let n = 1; n < 20; n++) expect((await portal(acme)).status).to.equal(status)
      const cancellation = () => acme.delete('/v1/admin/subscription', { reason: 'x' })
      for (const request of [() => portal(acme), cancellation])
        expectLimited(await request(), 'Too many requests of this API key or account, try again later', '3')
      expect(service.told.limited).to.deep.equal(['payment-provider', 'payment-provider'])
      expect((await portal(other)).status).to.equal(status)
      expect((await acme.get('/v1/admin/credits')).status).to.equal(200)
      clock.advance(3_000)
      expect((await portal(acme)).status).to.equal(status)
      expect((await portal(acme)).status).to.equal(429)
    })

    it('of one customer run two at a time, and keep no other customer waiting', async () => {
      await serviceWith({ keyRequestsPerSecond: 10 })
      const [acme, other] = [await owner('acme'), await owner('other')]
      await acme.post('/v1/admin/projects', PROJECT)
      await acme.post('/v1/admin/buffers', bufferBody('a', 'p'))
      const db = connect(service.databaseUrl, { max: 2 })
      try {
        const waiting = async () => {
          const [row] = await db<[{ count: number }]>`SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'`
          return row.count
        }
        const { started } = await db.begin(async (transaction) => {
          await transaction`LOCK TABLE projects`
          const asked = Array.from({ length: 4 }, () => acme.get('/v1/admin/projects?customerId=acme'))
          await eventually(async () => expect(await waiting()).to.equal(2))
          asked.push(other.get('/v1/admin/projects?customerId=other'))
          await eventually(async () => expect(await waiting()).to.equal(3))
          // What waits for a destination takes no turn.
          expect((await acme.post('/v1/admin/buffers/a/test', { payload: {} })).status).to.equal(200)
          // Not the list itself: the driver would wait for it before it ends the transaction.
          return { started: asked }
        })
        for (const answer of started) expect((await answer).status).to.equal(200)
      } finally {
        await db.end()
      }
    })

    it('whose answers are large cost more, and those that wait behind them are not run', async () => {
      await serviceWith({ keyRequestsPerSecond: 2 })
      const [acme, other] = [await owner('acme'), await owner('other')]
      await acme.post('/v1/admin/projects', PROJECT)
      const headers = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`x-${n}`, 'x'.repeat(1_500)]))
      const delivery = { url: 'http://127.0.0.1:9/', headers }
      for (let n = 0; n < 40; n++) {
        clock.advance(500)
        expect(
          (await acme.post('/v1/admin/buffers', bufferBody(`b${n}`, 'p', { delivery }))).status,
        ).to.equal(201)
      }
      clock.advance(60_000)
      // 620 KB: six tokens for its size. A key has four of these, and gets two a second.
      const list = (projectId: string) => acme.get(`/v1/admin/buffers?customerId=acme&projectId=${projectId}`)
      const answers = await Promise.all(Array.from({ length: 4 }, () => list('p')))
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 200, 429, 429])
      clock.advance(3_000)
      expect((await list('none')).json).to.include({ code: 'rate_limited' })
      const made = await acme.post('/v1/admin/api-keys', { name: 'k', role: 'viewer' })
      expect(made.status, 'a change').to.equal(201)
      expect((await other.get('/v1/admin/credits')).status, 'of somebody else').to.equal(200)
      clock.advance(4_000)
      expect((await list('none')).status).to.equal(200)
    })

    it('with a wrong credential count for nobody', async () => {
      await serviceWith({ keyRequestsPerSecond: 1 })
      const stranger = adminOf(service.url, `svk_${'0'.repeat(48)}`)
      for (let n = 0; n < 10; n++) expect((await stranger.get('/v1/admin/credits')).status).to.equal(401)
      expect(service.told.limited).to.deep.equal([])
    })
  })

  it('tests of a buffer beyond their rate are answered 429, those of another one are not', async () => {
    await serviceWith({ testsPerMinute: 30 })
    const acme = await owner('acme')
    await acme.post('/v1/admin/projects', PROJECT)
    for (const id of ['a', 'b']) await acme.post('/v1/admin/buffers', bufferBody(id, 'p'))
    const test = (id: string) => acme.post(`/v1/admin/buffers/${id}/test`, { payload: {} })
    for (let n = 0; n < 5; n++) expect((await test('a')).status).to.equal(200)
    expectLimited(await test('a'), 'Too many test deliveries of this buffer, try again later', '2')
    expect((await test('b')).status).to.equal(200)
    expect(service.told.limited).to.deep.equal(['test'])
    clock.advance(2_000)
    expect((await test('a')).status).to.equal(200)
  })

  it('projects beyond their number are answered 409 until one is deleted', async () => {
    await serviceWith({ maxProjects: 2 })
    const [acme, other] = [await owner('acme'), await owner('other')]
    const create = (who: Admin, projectId: string) => who.post('/v1/admin/projects', { projectId, name: 'p' })
    for (const id of ['p1', 'p2']) expect((await create(acme, id)).status).to.equal(201)
    expectFull(await create(acme, 'p3'), 'Account has as many projects as it may')
    expect((await create(other, 'p3')).status, 'of somebody else').to.equal(201)
    expect((await acme.delete('/v1/admin/projects/p1')).status).to.equal(204)
    expect((await create(acme, 'p1')).status).to.equal(201)
  })

  it('buffers beyond their number are answered 409, copies too, until one is deleted', async () => {
    await serviceWith({ maxBuffers: 2 })
    const acme = await owner('acme')
    await acme.post('/v1/admin/projects', PROJECT)
    const create = (id: string) => acme.post('/v1/admin/buffers', bufferBody(id, 'p'))
    for (const id of ['b1', 'b2']) expect((await create(id)).status).to.equal(201)
    expectFull(await create('b3'), 'Account has as many buffers as it may')
    expectFull(await acme.post('/v1/admin/buffers/b1/clone'), 'Account has as many buffers as it may')
    expect(((await acme.get('/v1/admin/buffers?customerId=acme')).json as unknown[]).length).to.equal(2)
    expect((await acme.delete('/v1/admin/buffers/b2')).status).to.equal(204)
    expect((await acme.post('/v1/admin/buffers/b1/clone')).status).to.equal(201)
  })

  it('buffers that are created at once are counted one after the other', async () => {
    await serviceWith({ maxBuffers: 3 })
    const acme = await owner('acme')
    await acme.post('/v1/admin/projects', PROJECT)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => acme.post('/v1/admin/buffers', bufferBody(`b${n}`, 'p'))),
    )
    expect(answers.filter(({ status }) => status === 201)).to.have.length(3)
    expect(answers.filter(({ status }) => status === 409)).to.have.length(9)
  })

  it('ids that were used up can be had again, and no new ones', async () => {
    await serviceWith({ maxBuffers: 1, maxProjects: 1 })
    const acme = await owner('acme')
    await acme.post('/v1/admin/projects', PROJECT)
    for (let n = 0; n < IDS_RATIO; n++) {
      expect((await acme.post('/v1/admin/buffers', bufferBody(`b${n}`, 'p'))).status).to.equal(201)
      expect((await acme.delete(`/v1/admin/buffers/b${n}`)).status).to.equal(204)
    }
    const error = 'Account has used as many ids as it may, use one again that it had before'
    expectFull(await acme.post('/v1/admin/buffers', bufferBody('new', 'p')), error)
    expect((await acme.post('/v1/admin/buffers', bufferBody('b3', 'p'))).status).to.equal(201)
    await acme.delete('/v1/admin/buffers/b3')
    for (let n = 1; n < IDS_RATIO; n++) {
      await acme.delete(`/v1/admin/projects/${n === 1 ? 'p' : `p${n - 1}`}`)
      expect((await acme.post('/v1/admin/projects', { projectId: `p${n}`, name: 'p' })).status).to.equal(201)
    }
    await acme.delete(`/v1/admin/projects/p${IDS_RATIO - 1}`)
    expectFull(await acme.post('/v1/admin/projects', { projectId: 'new', name: 'p' }), error)
    expect((await acme.post('/v1/admin/projects', PROJECT)).status).to.equal(201)
  })

  it('customers beyond the number that one may create are answered 409', async () => {
    await serviceWith({ maxCustomers: 1 })
    const [acme, other] = [await owner('acme'), await owner('other')]
    const create = (who: Admin, customerId: string) =>
      who.post('/v1/admin/customers', { customerId, name: 'c' })
    expect((await create(acme, 'c1')).status).to.equal(201)
    expectFull(await create(acme, 'c2'), 'Account has created as many customers as it may')
    expect((await create(other, 'c2')).status).to.equal(201)
  })
})

function expectLimited(answer: Answer, error: string, retryAfter: string): void {
  expect([answer.status, answer.json]).to.deep.equal([429, { error, code: 'rate_limited' }])
  expect(answer.headers.get('retry-after')).to.equal(retryAfter)
}

function expectFull(answer: Answer, error: string): void {
  expect([answer.status, answer.json]).to.deep.equal([409, { error, code: 'limit_reached' }])
  expect(answer.headers.get('retry-after')).to.equal(null)
}
