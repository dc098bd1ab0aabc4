import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { AuditTelemetry } from '../../internal/audit/ports.ts'
import {
  type AuditTrail,
  type AuditTrailOptions,
  type Change,
  createAuditTrail,
  type RefusedCredential,
} from '../../internal/audit/trail.ts'
import type { AuditRecord } from '../../internal/domain/audit.ts'
import type { ApiKeyRecord } from '../../internal/domain/model.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

const MINUTE = 60_000
/** Customers by what their revoked keys begin with. */
const revokedKeys = new Map([
  ['gone', 'acme'],
  ['theirs', 'rival'],
])
const FROM = { address: '192.0.2.7' }

describe('the trail of the audit', () => {
  let clock: ManualClock
  let stored: AuditRecord[]
  let told: string[]
  let leftOut: number[]
  let ids: number
  let trail: AuditTrail

  beforeEach(() => {
    clock = new ManualClock()
    stored = []
    told = []
    leftOut = []
    ids = 0
    trail = trailWith()
  })

  function trailWith(more: Partial<AuditTrailOptions> = {}): AuditTrail {
    const telemetry: AuditTelemetry = {
      authenticationFailed: (place, credential) => told.push(`${place} ${credential}`),
      written: () => {},
      lost: (reason, records) => told.push(`${reason} ${records}`),
      leftOut: (records) => leftOut.push(records),
      waits: () => {},
    }
    return createAuditTrail({
      clock,
      telemetry,
      store: { insert: async (records) => void stored.push(...records) },
      revokedKey(secret) {
        const customerId = revokedKeys.get(secret.split('-')[0]!)
        return customerId === undefined ? undefined : ({ customerId, keyId: secret } as ApiKeyRecord)
      },
      newId: () => `id-${++ids}`,
      isOutage: () => false,
      ...more,
    })
  }

  function change(more: Partial<Change> = {}): Change {
    return {
      principal: { customerId: 'acme', role: 'owner', via: 'key', keyId: 'k1' },
      action: 'writeProjects',
      method: 'POST',
      route: '/v1/admin/projects',
      target: { projectId: 'shop' },
      from: FROM,
      status: 201,
      ...more,
    }
  }

  function refused(secret: string, more: Partial<RefusedCredential> = {}): RefusedCredential {
    const asked = { method: 'GET', route: '/v1/admin/credits', target: {}, from: FROM }
    return { ...asked, place: 'management', credential: 'key', secret, ...more }
  }

  async function pass(ms: number): Promise<void> {
    clock.advance(ms)
    await setImmediate()
  }

  const counts = () => stored.map(({ event, status, count }) => `${event} ${status} ${count}`)

  it('keeps who did what, from where, and what came of it', async () => {
    clock.advance(5)
    trail.changed(change())
    const identity = { issuer: 'https://id.example', subject: `ada\u0000${'x'.repeat(300)}` }
    trail.changed(change({ principal: { customerId: 'cus_1', role: 'owner', via: 'token', identity } }))
    await pass(250)
    expect(stored).to.deep.equal([
      {
        auditId: 'id-1',
        customerId: 'acme',
        createdAt: 5,
        event: 'change',
        actor: { type: 'key', keyId: 'k1' },
        method: 'POST',
        route: '/v1/admin/projects',
        target: { projectId: 'shop' },
        from: FROM,
        status: 201,
        count: 1,
      },
      {
        ...stored[1],
        customerId: 'cus_1',
        actor: { type: 'token', issuer: 'https://id.example', subject: `ada\ufffd${'x'.repeat(251)}` },
      },
    ])
  })

  it('keeps a revoked key for its customer, and keeps nothing of its secret', async () => {
    trail.refused(refused('gone-1', { place: 'ingest' }))
    await pass(250)
    expect(stored).to.have.length(1)
    expect(stored[0]).to.deep.include({
      customerId: 'acme',
      event: 'authentication_failed',
      actor: { type: 'key', keyId: 'gone-1' },
      status: 401,
      count: 1,
    })
    expect(stored[0]).not.to.have.any.keys('secret', 'place', 'credential')
  })

  it('keeps what is nobody’s as a metric alone', async () => {
    trail.refused(refused('unknown'))
    trail.refused({ ...refused(''), credential: 'token' })
    trail.refused({ ...refused(''), credential: 'none' })
    await pass(MINUTE)
    expect(stored).to.deep.equal([])
    expect(told).to.deep.equal(['management key', 'management token', 'management none'])
  })

  it('keeps a key that is presented again and again once a minute, with a count', async () => {
    for (let n = 0; n < 1_000; n++) trail.refused(refused('gone-1', { from: { address: `a${n}` } }))
    await pass(250)
    expect(counts()).to.deep.equal(['authentication_failed 401 1'])
    await pass(MINUTE - 250)
    await pass(250)
    expect(counts()).to.deep.equal(['authentication_failed 401 1', 'authentication_failed 401 999'])
    expect(stored[1]!.from, 'the last one').to.deep.equal({ address: 'a999' })
    trail.refused(refused('gone-1'))
    await pass(MINUTE - 251)
    expect(counts(), 'within the next minute').to.have.length(2)
    await pass(1)
    await pass(250)
    expect(counts().at(-1)).to.equal('authentication_failed 401 1')
    await pass(2 * MINUTE)
    trail.refused(refused('gone-1'))
    await pass(250)
    expect(counts(), 'at once, after a quiet minute').to.have.length(4)
    expect(told.filter((text) => text === 'management key')).to.have.length(1_002)
  })

  it('tells keys apart, and where they were presented', async () => {
    trail.refused(refused('gone-1'))
    trail.refused(refused('gone-2'))
    trail.refused(refused('gone-1', { place: 'ingest' }))
    await pass(250)
    expect(stored.map(({ actor }) => actor.keyId)).to.deep.equal(['gone-1', 'gone-2', 'gone-1'])
  })

  it('counts 1,000 keys in a minute at most, and says that others are missing', async () => {
    trail = trailWith({ refusals: { burst: 10_000, perMinute: 1 } })
    for (let n = 0; n < 1_003; n++) trail.refused(refused(`gone-${n}`))
    await pass(250)
    expect(stored).to.have.length(1_000)
    expect(told.filter((text) => text === 'limit 1')).to.have.length(3)
  })

  it('lets nobody’s thousands of revoked keys hide the key of another', async () => {
    for (let n = 0; n < 5_000; n++) trail.refused(refused(`gone-${n}`))
    trail.refused(refused('theirs-1'))
    await pass(250)
    expect(stored.filter(({ customerId }) => customerId === 'acme')).to.have.length(100)
    expect(stored.filter(({ customerId }) => customerId === 'rival')).to.have.length(1)
  })

  it('keeps so many of a customer, says how many are missing, and takes nothing of others', async () => {
    trail = trailWith({ changes: { burst: 3, perMinute: 2 } })
    for (let n = 0; n < 10; n++) trail.changed(change())
    trail.changed(change({ principal: { customerId: 'rival', role: 'owner', via: 'key', keyId: 'k2' } }))
    await pass(250)
    expect(stored.map(({ customerId }) => customerId)).to.deep.equal(['acme', 'acme', 'acme', 'rival'])
    expect(told).to.deep.equal(Array.from({ length: 7 }, () => 'limit 1'))
    await pass(MINUTE)
    await pass(250)
    expect(stored.at(-1)).to.deep.include({
      customerId: 'acme',
      event: 'left_out',
      actor: { type: 'service' },
      count: 7,
    })
    expect(leftOut).to.deep.equal([7])
    for (let n = 0; n < 4; n++) trail.changed(change())
    await pass(250)
    expect(counts().slice(5), 'two a minute come back').to.deep.equal(['change 201 1', 'change 201 1'])
  })

  it('hides no change behind a flood of refused requests', async () => {
    for (let n = 0; n < 500; n++) trail.changed(change({ status: 403 }))
    trail.changed(change({ status: 204 }))
    await pass(250)
    expect(stored.filter(({ status }) => status === 403)).to.have.length(100)
    expect(stored.at(-1)).to.include({ status: 204 })
  })

  for (const action of ['writeApiKeys', 'createCustomers', 'addCredits', 'cancelImmediately'] as const) {
    it(`keeps ${action} behind a flood of changed buffers`, async () => {
      for (let n = 0; n < 1_060; n++) trail.changed(change({ action: 'writeBuffers', status: 200 }))
      trail.changed(change({ action }))
      await pass(250)
      for (let turn = 0; turn < 5; turn++) await setImmediate()
      expect(stored).to.have.length(1_001)
      expect(stored.at(-1)).to.include({ status: 201 })
    })
  }

  it('keeps a refused change of keys behind a flood of refused buffers', async () => {
    for (let n = 0; n < 500; n++) trail.changed(change({ action: 'writeBuffers', status: 400 }))
    trail.changed(change({ action: 'writeApiKeys', status: 503 }))
    await pass(250)
    expect(stored).to.have.length(101)
    expect(stored.at(-1)).to.include({ status: 503 })
  })

  it('keeps a revoked key behind a flood of refused requests', async () => {
    for (let n = 0; n < 500; n++) trail.changed(change({ status: 400 }))
    trail.refused(refused('gone-1'))
    await pass(250)
    expect(stored.at(-1)).to.include({ event: 'authentication_failed' })
  })

  it('says afterwards what did not fit into memory while Postgres was away', async () => {
    let away = true
    const store = {
      insert: async (records: readonly AuditRecord[]) => {
        if (away) throw new Error('away')
        stored.push(...records)
      },
    }
    trail = trailWith({ store, isOutage: () => true, changes: { burst: 20_000, perMinute: 1 } })
    for (let n = 0; n < 10_003; n++) trail.changed(change())
    expect(told).to.deep.equal(['full 1', 'full 1', 'full 1'])
    await pass(MINUTE)
    away = false
    // The room comes back first, then the notice of what was missing gets in.
    for (let n = 0; n < 3; n++) {
      await pass(MINUTE)
      for (let turn = 0; turn < 30; turn++) await setImmediate()
    }
    expect(stored).to.have.length(10_001)
    expect(stored.at(-1)).to.include({ event: 'left_out', count: 3 })
  })

  it('writes at a stop what it counted and what is missing', async () => {
    trail = trailWith({ changes: { burst: 1, perMinute: 1 } })
    for (let n = 0; n < 3; n++) trail.changed(change())
    for (let n = 0; n < 5; n++) trail.refused(refused('gone-1'))
    await trail.stop()
    expect(counts()).to.have.members([
      'change 201 1',
      'authentication_failed 401 1',
      'authentication_failed 401 4',
      'left_out null 2',
    ])
    expect(clock.pending).to.equal(0)
  })

  it('says by metric and log what a stop has lost', async () => {
    const store = { insert: () => Promise.reject(new Error('away')) }
    trail = trailWith({ store, isOutage: () => true })
    for (let n = 0; n < 3; n++) trail.changed(change())
    await trail.stop()
    expect([told, leftOut]).to.deep.equal([['stopped 3'], [3]])
  })
})
