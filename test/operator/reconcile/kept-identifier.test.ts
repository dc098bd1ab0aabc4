/** Somebody names the identifier of another one's buffer, and never gets the buffer: told apart in memory, in virtual time. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { BufferIdClaims } from '../../../operator/reconcile/buffer-id-claims.ts'
import { bufferIdOf } from '../../../operator/reconcile/desired-buffer.ts'
import { type AdminBuffers, AdminError, type SecretResource } from '../../../operator/reconcile/ports.ts'
import { BufferReconciler } from '../../../operator/reconcile/reconciler.ts'
import { type BufferResource, UNMANAGED_ANNOTATION } from '../../../operator/resource.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { type Given, KEY, resource, secret, stored } from './fixtures.ts'
import { quietParts, writerTo } from './quiet-parts.ts'

const { signal } = new AbortController()
const BAD_KEY = `svk_${'bd'.repeat(24)}`
const [GOOD, BAD] = ['good/orders', 'bad/orders']
/** What a Buffer that has a rival waits for until it looks again, ms. */
const AGAIN_MS = 30_000

/** The account of `bad` has used up its rate whenever something is to be created with it. */
function fixture() {
  const clock = new ManualClock()
  const resources = new Map<string, BufferResource>()
  const secrets = new Map<string, SecretResource>()
  const removed: string[] = []
  let exists = false
  const admin: AdminBuffers = {
    read: async (key) => (exists && key === KEY ? stored() : undefined),
    async create(key) {
      if (key === BAD_KEY) throw new AdminError('throttled', 'slowly', { retryAfterMs: 1_000 })
      exists = true
      return stored()
    },
    update: async () => stored(),
    async remove(key) {
      removed.push(key)
      return true
    },
    holder: async () => ({ customerId: 'acme', projects: null }),
  }
  const store = {
    get: (key: string) => resources.get(key),
    list: () => [...resources.values()],
    byIndex: (_index: string, id: string) =>
      [...resources.values()].filter((each) => bufferIdOf(each) === id),
  }
  const put = (key: string, more: Given = {}) => {
    const [namespace] = key.split('/') as [string]
    const signing = secret('signing', { secret: 'signing-secret-of-orders' })
    secrets.set(`${namespace}/signing`, signing)
    secrets.set(`${namespace}/penstock`, secret('penstock', { apiKey: key === BAD ? BAD_KEY : KEY }))
    const { status } = resources.get(key) ?? {}
    const given = { ...(status && { status }), ...more }
    resources.set(
      key,
      resource({ ...given, metadata: { namespace, uid: `uid-of-${namespace}`, ...more.metadata } }),
    )
  }
  const write = async (written: BufferResource) => {
    resources.set(`${written.metadata.namespace}/${written.metadata.name}`, written)
    return written
  }
  const reconciler = new BufferReconciler({
    ...quietParts,
    admin,
    clock,
    resources: store,
    claims: new BufferIdClaims(store, clock),
    verifyMs: 300_000,
    secrets: { ...store, get: (key) => secrets.get(key), list: () => [], byIndex: () => [] },
    values: { read: async (known) => known as SecretResource },
    writer: writerTo(write),
  })
  const pass = (key: string) => reconciler.reconcile(key, signal)
  /** Ms until the good Buffer is ready; the bad one gets a pass each second where it tries. */
  const readyAfter = async (badTries: boolean): Promise<number> => {
    for (let ms = 0; ms < 600_000; ms += 1_000) {
      if (badTries) await pass(BAD)
      // A claim is followed by a pass at once.
      if (ms % AGAIN_MS === 0) for (let passes = 0; passes < 2; passes++) await pass(GOOD)
      if (resources.get(GOOD)?.status?.conditions?.[0]?.reason === 'Synced') return ms
      clock.advance(1_000)
    }
    return Number.POSITIVE_INFINITY
  }
  return { clock, resources, secrets, removed, put, pass, readyAfter }
}

/** The bad one has noted its intent, and its creation was answered 429. */
async function claimed() {
  const parts = fixture()
  parts.put(BAD)
  for (let passes = 0; passes < 3; passes++) await parts.pass(BAD)
  expect(parts.resources.get(BAD)?.status?.bufferId).to.equal('orders')
  parts.put(GOOD)
  return parts
}

describe('an identifier that somebody claims, and never gets', () => {
  it('is free after a minute, however often that one tries', async () => {
    const { readyAfter } = await claimed()
    expect(await readyAfter(true)).to.be.at.most(90_000)
  })

  it('is free at once when that one is paused', async () => {
    const { put, pass, readyAfter } = await claimed()
    put(BAD, { metadata: { annotations: { [UNMANAGED_ANNOTATION]: 'true' } } })
    await pass(BAD)
    expect(await readyAfter(false)).to.equal(0)
  })

  it('is free at once when that one has no Secret any more', async () => {
    const { secrets, pass, readyAfter } = await claimed()
    secrets.delete('bad/penstock')
    await pass(BAD)
    expect(await readyAfter(false)).to.equal(0)
  })

  it('leaves the buffer to the one that got it, whatever becomes of the other', async () => {
    const { resources, removed, put, pass, readyAfter } = await claimed()
    await readyAfter(true)
    expect(resources.get(BAD)?.status?.conditions?.[0]?.reason).to.equal('Conflict')
    put(BAD, { metadata: { deletionTimestamp: '2026-03-01T12:00:00Z' }, status: { bufferId: 'orders' } })
    await pass(BAD)
    expect(resources.get(BAD)?.metadata.finalizers).to.deep.equal([])
    expect(removed).to.deep.equal([])
  })
})
