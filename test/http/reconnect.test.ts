/** What a node answers that was cut off from Postgres for minutes, before it has heard what happened meanwhile. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createDeletedBuffers } from '../../internal/postgres/deleted-buffers.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/servers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { type Admin, type Answer, adminOf, bufferBody, call } from './caller.ts'
import { startService, type TestService } from './service.ts'

const OUTAGE_MS = 11 * 60_000

/** The system's clock, which a test can put forward. */
class AheadClock implements Clock {
  readonly #clock = systemClock()
  aheadMs = 0
  now = (): number => this.#clock.now() + this.aheadMs
  monotonic = (): number => this.#clock.monotonic() + this.aheadMs
  after = (ms: number, task: () => void): (() => void) => this.#clock.after(ms, task)
}

describe('after eleven minutes without Postgres', function () {
  this.timeout(60_000)
  const clock = new AheadClock()
  let proxy: TcpProxy
  let near: TestService
  let far: TestService
  let admin: Admin
  let key: string
  let revoked: { keyId: string; secret: string }
  /** Lets the change feed go on. */
  const release = Promise.withResolvers<void>()
  let held: Promise<unknown>

  before(async () => {
    const databaseUrl = await freshDatabase()
    proxy = await TcpProxy.to(Number(new URL(databaseUrl).port))
    near = await startService({ databaseUrl })
    far = await startService({ databaseUrl: proxy.through(databaseUrl), clock, feed: true })
    key = await near.ownerKey('acme')
    revoked = await near.apiKeys.createOwnerKey('acme')
    admin = adminOf(near.url, key)
    await admin.post('/v1/admin/projects', { projectId: 'shop', name: 'shop' })
    for (const id of ['removed', 'taken', 'disabled', 'kept']) {
      await admin.post('/v1/admin/buffers', bufferBody(id, 'shop'))
      expect((await ingest(id)).status).to.equal(202)
      expect((await ingest(id, revoked.secret)).status).to.equal(202)
    }
    far.inbox.items.length = 0
    proxy.blackhole()
    await change()
    held = holdFeed()
    clock.aheadMs = OUTAGE_MS
    proxy.reset()
    proxy.heal()
    await eventually(async () => (await ingest('kept')).status === 202)
  })
  after(async () => {
    release.resolve()
    await held
    await far.stop()
    await near.stop()
    await proxy.close()
  })

  function ingest(bufferId: string, withKey?: string): Promise<Answer> {
    return call(`${far.url}/v1/ingest/shop/${bufferId}`, {
      method: 'POST',
      headers: withKey === undefined ? {} : { 'x-api-key': withKey },
      body: '{"customer":"c"}',
    })
  }

  /** By another node, while this one is cut off. */
  async function change(): Promise<void> {
    for (const id of ['removed', 'taken']) await admin.delete(`/v1/admin/buffers/${id}`)
    const rows = createDeletedBuffers(near.db, { shards: 1, graceMs: 0 })
    const { before } = await rows.pending(0)
    await rows.report({ shard: 0, epoch: 1 }, { before, position: 1, held: [] })
    await rows.remove()
    await admin.post('/v1/admin/buffers', bufferBody('taken', 'shop', { name: 'anew' }))
    await admin.patch('/v1/admin/buffers/disabled', { enabled: false })
    await admin.delete(`/v1/admin/api-keys/${revoked.keyId}`)
  }

  /** No node can read the feed until `release`; all else goes on. */
  async function holdFeed(): Promise<void> {
    const locked = Promise.withResolvers<void>()
    held = near.db.begin(async (transaction) => {
      await transaction`SET LOCAL idle_in_transaction_session_timeout = 0`
      await transaction`LOCK TABLE config_version IN ACCESS EXCLUSIVE MODE`
      locked.resolve()
      await release.promise
    })
    await locked.promise
  }

  it('accepts nothing for a buffer that is gone, or disabled, though the feed has not told', async () => {
    far.inbox.items.length = 0
    expect((await ingest('removed')).status).to.equal(404)
    expect((await ingest('disabled')).status).to.equal(400)
    expect(far.inbox.items).to.have.length(0)
  })

  it('accepts for the buffer that has the id now', async () => {
    expect((await ingest('taken')).status).to.equal(202)
    const [row] = await near.db`SELECT uid FROM buffers WHERE buffer_id = 'taken'`
    expect(far.inbox.items.map(({ bufferUid }) => bufferUid)).to.deep.equal([row!.uid])
  })

  it('takes no key that was revoked, neither for webhooks nor for the management API', async () => {
    expect((await ingest('kept', revoked.secret)).status).to.equal(401)
    expect((await adminOf(far.url, revoked.secret).get('/v1/admin/credits')).status).to.equal(401)
    expect((await ingest('kept', key)).status).to.equal(202)
  })

  it('answers from memory again once the feed has caught up', async () => {
    release.resolve()
    await held
    await eventually(async () => {
      await near.db`ALTER TABLE buffers RENAME TO away`
      const { status } = await ingest('kept')
      await near.db`ALTER TABLE away RENAME TO buffers`
      return status === 202
    })
  })
})
