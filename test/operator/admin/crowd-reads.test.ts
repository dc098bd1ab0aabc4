import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Buffer } from '../../../internal/domain/model.ts'
import { type ListingAdmin, withCrowdReads } from '../../../operator/admin/crowd-reads.ts'
import { AdminError } from '../../../operator/reconcile/ports.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { KEY, stored } from '../reconcile/fixtures.ts'

const { signal } = new AbortController()
const CROWD = Array.from({ length: 100 }, (_, n) => `buffer-${n}`)

/** An admin API that has the buffers of `CROWD`, and counts what it is asked. */
function fixture(failing: { list?: AdminError } = {}) {
  const clock = new ManualClock()
  const asked = { read: 0, list: 0, holder: 0 }
  const buffer = (bufferId: string): Buffer => ({ ...stored(), bufferId })
  const admin: ListingAdmin = {
    async read(_key, bufferId) {
      asked.read++
      return CROWD.includes(bufferId) ? buffer(bufferId) : undefined
    },
    async list() {
      asked.list++
      if (failing.list) throw failing.list
      return CROWD.map(buffer)
    },
    async holder() {
      asked.holder++
      return { customerId: 'acme', projects: null }
    },
    create: async (_key, body) => buffer(String(body.bufferId)),
    update: async (_key, bufferId) => buffer(bufferId),
    remove: async () => true,
  }
  const crowd = withCrowdReads(admin, clock)
  const readAll = async (key = KEY) => {
    const found: (string | undefined)[] = []
    for (const bufferId of CROWD) found.push((await crowd.read(key, bufferId, signal))?.bufferId)
    return found
  }
  return { clock, asked, crowd, readAll }
}

describe('many reads by one key', () => {
  it('are few requests, and find what single ones would', async () => {
    const { asked, crowd, readAll } = fixture()
    expect(await readAll()).to.deep.equal(CROWD)
    expect(asked).to.deep.equal({ read: 20, list: 1, holder: 1 })
    expect(await crowd.read(KEY, 'no-buffer', signal)).to.equal(undefined)
    expect(asked.list).to.equal(1)
  })

  it('share no list that is older than two seconds, and none of another key', async () => {
    const { clock, asked, readAll } = fixture()
    await readAll()
    clock.advance(2_001)
    await readAll()
    expect(asked).to.deep.equal({ read: 28, list: 2, holder: 1 })
    await readAll(`svk_${'1b'.repeat(24)}`)
    expect(asked).to.deep.equal({ read: 48, list: 3, holder: 2 })
  })

  it('are single ones behind a change of this process, which no list may miss', async () => {
    const { clock, asked, crowd, readAll } = fixture()
    await readAll()
    await crowd.create(KEY, { bufferId: 'made' }, signal)
    await readAll()
    expect(asked).to.deep.equal({ read: 120, list: 1, holder: 1 })
    clock.advance(2_001)
    await readAll()
    expect(asked.list).to.equal(2)
  })

  it('are single ones for a while after a list that failed, which fails one of them', async () => {
    const { clock, asked, crowd, readAll } = fixture({ list: new AdminError('unavailable', 'far too much') })
    const failure = await readAll().catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(AdminError)
    await readAll()
    expect(asked).to.deep.equal({ read: 120, list: 1, holder: 1 })
    clock.advance(60_000)
    for (let n = 0; n < 20; n++) await crowd.read(KEY, 'buffer-1', signal)
    expect(asked.list).to.equal(1)
  })

  it('are single ones for whoever reads at leisure', async () => {
    const { clock, asked, crowd } = fixture()
    for (let n = 0; n < 100; n++) {
      await crowd.read(KEY, 'buffer-1', signal)
      clock.advance(300)
    }
    expect(asked).to.deep.equal({ read: 100, list: 0, holder: 0 })
  })
})
