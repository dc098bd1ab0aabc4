/** What happens while a pass waits, told apart in memory: the API server and the service answer when the test says so. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Buffer } from '../../../internal/domain/model.ts'
import { BufferIdClaims } from '../../../operator/reconcile/buffer-id-claims.ts'
import { bufferIdOf } from '../../../operator/reconcile/desired-buffer.ts'
import {
  type AdminBuffers,
  type BufferState,
  type SecretResource,
  StaleError,
} from '../../../operator/reconcile/ports.ts'
import { BufferReconciler } from '../../../operator/reconcile/reconciler.ts'
import type { BufferResource } from '../../../operator/resource.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { resource, SECRETS, SYNCED, stored } from './fixtures.ts'
import { quietParts, writerTo } from './quiet-parts.ts'

const { signal } = new AbortController()
const KEY = 'shop/orders'

/** A reconciler over `resources`, and a service that has the buffer `orders`. */
function fixture(first: BufferResource, remote: Buffer = stored()) {
  const resources = new Map([[KEY, first]])
  const asked: string[] = []
  /** What the next reading of a Secret, and the next look at the service, wait for. */
  const gates: {
    secret?: Promise<void> | undefined
    look?: Promise<void> | undefined
    /** Somebody else changes the resource before each write of a pass. */
    isStale?: boolean
  } = {}
  const service = { remote }
  const admin: AdminBuffers = {
    async read() {
      asked.push('read')
      const { remote } = service
      await gates.look
      return remote
    },
    create: async () => service.remote,
    async update(_key, _id, patch) {
      asked.push(`update ${JSON.stringify(patch)}`)
      return service.remote
    },
    async remove() {
      asked.push('remove')
      return true
    },
    holder: async () => ({ customerId: 'acme', projects: null }),
  }
  const find = (key: string) => SECRETS.find(({ metadata }) => `shop/${metadata.name}` === key)
  const store = {
    get: (key: string) => resources.get(key),
    list: () => [...resources.values()],
    byIndex: (_index: string, id: string) =>
      [...resources.values()].filter((each) => bufferIdOf(each) === id),
  }
  const write = (written: BufferResource) => {
    if (gates.isStale) return Promise.reject(new StaleError('409'))
    const key = `shop/${written.metadata.name}`
    if (resources.has(key)) resources.set(key, written)
    return Promise.resolve(written)
  }
  const clock = new ManualClock()
  const reconciler = new BufferReconciler({
    ...quietParts,
    admin,
    resources: store,
    claims: new BufferIdClaims(store, clock),
    clock,
    verifyMs: 300_000,
    secrets: { ...store, get: find, list: () => SECRETS, byIndex: () => [] },
    values: {
      async read(known) {
        await gates.secret
        return known as SecretResource
      },
    },
    writer: writerTo(write),
  })
  return { reconciler, resources, asked, gates, service }
}

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { closed: promise, open: resolve }
}

describe('while a pass reads Secrets', () => {
  it('another resource takes the buffer of a removed one over: it is not deleted', async () => {
    const first = resource({ status: SYNCED })
    const { reconciler, resources, asked, gates } = fixture(first)
    await reconciler.reconcile(KEY, signal)
    resources.delete(KEY)
    reconciler.removed(first)
    const { closed, open } = gate()
    gates.secret = closed
    const pass = reconciler.reconcile(KEY, signal)
    gates.secret = undefined
    const heir = resource({
      metadata: { name: 'heir', uid: 'uid-2' },
      spec: { bufferId: 'orders' },
      status: SYNCED,
    })
    resources.set('shop/heir', heir)
    open()
    await pass
    await reconciler.reconcile(KEY, signal)
    expect(asked).to.deep.equal([])
  })

  it('the deleted resource is told to leave its buffer: it does', async () => {
    const deleted = { metadata: { deletionTimestamp: '2026-03-01T11:59:59Z' }, status: SYNCED }
    const { reconciler, resources, asked, gates } = fixture(resource(deleted))
    const { closed, open } = gate()
    gates.secret = closed
    const pass = reconciler.reconcile(KEY, signal)
    gates.secret = undefined
    resources.set(KEY, resource({ ...deleted, spec: { deletionPolicy: 'Orphan' } }))
    open()
    expect(await pass).to.deep.equal({ requeueAfterMs: 0 })
    await reconciler.reconcile(KEY, signal)
    expect(asked).to.deep.equal([])
    expect(resources.get(KEY)!.metadata.finalizers).to.deep.equal([])
  })
})

describe('a resource that somebody changes all the time', () => {
  it('is no failure: its pass is repeated a moment later, and ever later up to 5 s', async () => {
    const { reconciler, gates } = fixture(resource({ metadata: { generation: 2 }, status: SYNCED }))
    gates.isStale = true
    const waits: (number | undefined)[] = []
    for (let pass = 0; pass < 9; pass++) waits.push((await reconciler.reconcile(KEY, signal)).requeueAfterMs)
    expect(waits).to.deep.equal([50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
    gates.isStale = false
    expect((await reconciler.reconcile(KEY, signal)).requeueAfterMs).to.equal(300_000)
  })
})

describe('while a pass looks at the service', () => {
  it('the service tells of a change that the look missed: another look follows, and only one', async () => {
    const { reconciler, resources, asked, gates, service } = fixture(
      resource({ metadata: { generation: 2 }, status: SYNCED }),
    )
    const { closed, open } = gate()
    gates.look = closed
    const pass = reconciler.reconcile(KEY, signal)
    await Promise.resolve()
    const paused: BufferState = {
      bufferId: 'orders',
      enabled: false,
      pausedAt: 5,
      updatedAt: 1,
      consecutiveDlqCount: 3,
      deadLetters: 3,
    }
    gates.look = undefined
    while (asked.length === 0) await Promise.resolve()
    reconciler.told(KEY, new Map([['orders', paused]]))
    open()
    expect((await pass).requeueAfterMs).to.equal(100)
    service.remote = stored(resource(), {
      enabled: false,
      pausedAt: 5,
      pausedReason: 'consecutive_dead_letters',
      consecutiveDlqCount: 3,
    })
    expect((await reconciler.reconcile(KEY, signal)).requeueAfterMs).to.equal(300_000)
    expect(resources.get(KEY)!.status).to.include({ enabled: false, deadLetters: 3 })
    expect(asked).to.deep.equal(['read', 'read'])
    // The same again is no news.
    expect(reconciler.told(KEY, new Map([['orders', paused]]))).to.equal(false)
  })
})

describe('a key that does not reach the buffer', () => {
  it('is told once that it is not there, and asked about no more', async () => {
    const { reconciler } = fixture(resource({ status: SYNCED }))
    await reconciler.reconcile(KEY, signal)
    expect(reconciler.told(KEY, new Map())).to.equal(true)
    expect(reconciler.told(KEY, new Map())).to.equal(false)
  })
})
