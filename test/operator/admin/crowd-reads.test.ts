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
function fixture(failing: { list?: AdminError | undefined } = {}) {
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
      return 'list' in failing ? undefined : CROWD.map(buffer)
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
    for (const bufferId of CROWD) found.push((await crowd.read(key, bufferId, signal, true))?.bufferId)
    return found
  }
  return { clock, asked, crowd, readAll }
}

describe('many reads by one key', () => {
  it('are few requests, and find what single ones would', async () => {
    const { asked, crowd, readAll } = fixture()
    expect(await readAll()).to.deep.equal(CROWD)
    expect(asked).to.deep.equal({ read: 20, list: 1, holder: 1 })
    expect(await crowd.read(KEY, 'no-buffer', signal, true)).to.equal(undefined)
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

  it('hold four lists at once, and read singly beyond them', async () => {
    const { clock, asked, readAll } = fixture()
    const keys = Array.from({ length: 6 }, (_, index) => `svk_${`${index}c`.repeat(24)}`)
    for (const key of keys) expect(await readAll(key)).to.deep.equal(CROWD)
    expect(asked).to.deep.include({ list: 4, read: 4 * 20 + 2 * CROWD.length })
    clock.advance(2_001)
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    await readAll(keys[5])
    expect(asked.list).to.equal(5)
  })

  it('find a change of this process, which no list may miss, by single ones', async () => {
    const { asked, crowd, readAll } = fixture()
    await readAll()
    await crowd.update(KEY, 'buffer-99', { name: 'changed' }, signal)
    await readAll()
    expect(asked).to.deep.equal({ read: 21, list: 1, holder: 1 })
  })

  it('are single ones for a while when a list is refused or too long', async () => {
    for (const list of [new AdminError('forbidden', 'no lists'), undefined]) {
      const { clock, asked, readAll } = fixture({ list })
      expect(await readAll()).to.deep.equal(CROWD)
      expect(asked.read).to.equal(100)
      clock.advance(59_000)
      await readAll()
      expect(asked.list).to.equal(1)
      clock.advance(1_000)
      await readAll()
      expect(asked.list).to.equal(2)
    }
  })

  it('fail while the service is away, and share a list as soon as it is back', async () => {
    const failing: { list?: AdminError | undefined } = { list: new AdminError('unavailable', 'away') }
    const { asked, readAll } = fixture(failing)
    expect(await readAll().catch((error: unknown) => error)).to.be.instanceOf(AdminError)
    delete failing.list
    expect(await readAll()).to.deep.equal(CROWD)
    expect(asked).to.deep.equal({ read: 20, list: 2, holder: 1 })
  })

  it('are single ones where the answer must be of now', async () => {
    const { asked, crowd } = fixture()
    for (let n = 0; n < 100; n++) await crowd.read(KEY, 'buffer-1', signal)
    expect(asked).to.deep.equal({ read: 100, list: 0, holder: 0 })
  })

  it('are single ones for whoever reads at leisure', async () => {
    const { clock, asked, crowd } = fixture()
    for (let n = 0; n < 100; n++) {
      await crowd.read(KEY, 'buffer-1', signal, true)
      clock.advance(300)
    }
    expect(asked).to.deep.equal({ read: 100, list: 0, holder: 0 })
  })
})
