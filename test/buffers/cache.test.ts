import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createBufferCache } from '../../internal/buffers/cache.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import type { BufferDirectory } from '../../internal/ingest/ports.ts'
import { momentOf } from '../../internal/runtime/moment.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { Policies } from '../../internal/shard/ports.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { type AccountsNode, accountsNode, bufferBody, principal } from '../support/accounts.ts'
import { recordOf, scriptedRows, turn } from './scripted-rows.ts'

const acme = principal('acme')

describe('the cache of buffers on Postgres', () => {
  let node: AccountsNode
  beforeEach(async () => {
    node = await accountsNode()
    await node.customers.ensure('acme')
    await node.projects.create(acme, { projectId: 'p', name: 'x' })
  })
  afterEach(() => node.close())

  it('is what ingest and the shards ask for', () => {
    const directory: BufferDirectory = node.bufferCache
    const policies: Policies = node.bufferCache
    expect(directory).to.equal(policies)
  })

  it('finds at once what another node just created, though it was unknown before', async () => {
    const second = await accountsNode(node.url)
    for (let round = 0; round < 20; round++) {
      const id = `fresh-${round}`
      expect(await second.bufferCache.loadById(id)).to.equal(undefined)
      await node.buffers.create(acme, bufferBody(id, 'p'))
      const record = await second.bufferCache.loadById(id)
      expect(record?.buffer.bufferId).to.equal(id)
      expect(await second.bufferCache.load(record!.uid)).to.equal(record)
    }
    await second.close()
  })

  it('shows changes made on the same node before they are answered, and tells the listeners', async () => {
    const told: BufferRecord[] = []
    const off = node.bufferCache.onChange((record) => told.push(record))
    await node.buffers.create(acme, bufferBody('b', 'p'))
    expect(node.bufferCache.peekById('b')?.buffer.enabled).to.equal(true)
    await node.buffers.update(acme, 'b', { enabled: false })
    expect(node.bufferCache.peekById('b')?.buffer.enabled).to.equal(false)
    const { uid } = node.bufferCache.peekById('b')!
    await node.buffers.remove(acme, 'b')
    expect(node.bufferCache.peekById('b')).to.equal(undefined)
    expect(await node.bufferCache.loadById('b')).to.equal(undefined)
    expect(await node.bufferCache.load(uid)).to.include({ deleted: true })
    expect(told.map(({ version }) => version)).to.deep.equal([1, 2, 3])
    off()
    await node.buffers.create(acme, bufferBody('b', 'p'))
    expect(told).to.have.length(3)
  })

  it('loads a deleted record by uid: the shards still hold its items', async () => {
    await node.buffers.create(acme, bufferBody('b', 'p'))
    const { uid } = node.bufferCache.peekById('b')!
    await node.buffers.remove(acme, 'b')
    const second = await accountsNode(node.url)
    expect(await second.bufferCache.load(uid)).to.include({ deleted: true })
    expect(await second.bufferCache.loadById('b')).to.equal(undefined)
    expect(await second.bufferCache.load(randomUUID())).to.equal(undefined)
    await second.close()
  })

  it('answers text that is no id without asking, and without harm to those who ask at the same time', async () => {
    await node.buffers.create(acme, bufferBody('b', 'p'))
    const second = await accountsNode(node.url)
    const asked = ['a', 'nul\u0000', '\ud800', 'x'.repeat(10_000), 'b'].map((id) =>
      second.bufferCache.loadById(id),
    )
    const found = await Promise.all(asked)
    expect(found.map((record) => record?.buffer.bufferId)).to.deep.equal([
      undefined,
      undefined,
      undefined,
      undefined,
      'b',
    ])
    await second.close()
  })

  it('rejects a cold load while the database is away, and serves what it holds', async () => {
    await node.buffers.create(acme, bufferBody('b', 'p'))
    await node.db.end()
    expect((await node.bufferCache.loadById('b'))?.buffer.bufferId).to.equal('b')
    const error = await node.bufferCache.loadById('c').catch((reason) => reason)
    expect(error).to.include({ name: 'ServiceError', status: 503 })
  })
})

describe('the cache of buffers', () => {
  let script: ReturnType<typeof scriptedRows>
  let cache: ReturnType<typeof createBufferCache>
  beforeEach(() => {
    script = scriptedRows()
    cache = createBufferCache({ rows: script.rows, clock: systemClock() })
  })

  it('reads once for all who miss together', async () => {
    const first = cache.loadById('a')
    const joined = Array.from({ length: 50 }, () => cache.loadById('b'))
    expect(script.asked.map(({ keys }) => keys)).to.deep.equal([['a']])
    script.asked[0]!.answer([])
    await first
    expect(script.asked.map(({ keys }) => keys)).to.deep.equal([['a'], ['b']])
    script.asked[1]!.answer([recordOf('u', 1)])
    expect(new Set(await Promise.all(joined)).size).to.equal(1)
    await cache.loadById('b')
    expect(script.asked).to.have.length(2)
  })

  it('never goes back to an older version, in whichever order reads and commits arrive', async () => {
    const loading = cache.load('u')
    cache.accept(recordOf('u', 3))
    script.asked[0]!.answer([recordOf('u', 2)])
    expect((await loading)?.version).to.equal(3)
    expect(cache.peekById('b')?.version).to.equal(3)
    cache.accept(recordOf('u', 1))
    expect(cache.peek('u')?.version).to.equal(3)
  })

  it('reads again what changed while it was being read', async () => {
    const loading = cache.loadById('b')
    await cache.changed(['u'])
    script.asked[0]!.answer([recordOf('u', 1)])
    await turn()
    expect(cache.peek('u')).to.equal(undefined)
    script.asked[1]!.answer([recordOf('u', 2)])
    expect((await loading)?.version).to.equal(2)
  })

  it('reads again what it holds when that changed elsewhere, and ignores the rest', async () => {
    cache.accept(recordOf('u', 1))
    const changing = cache.changed(['u', 'unknown'])
    expect(script.asked.map(({ keys }) => keys)).to.deep.equal([['u']])
    expect(cache.peek('u')?.version).to.equal(1)
    script.asked[0]!.answer([recordOf('u', 2)])
    await changing
    expect(cache.peekById('b')?.version).to.equal(2)
  })

  it('gives a freed id to its new holder, whichever of the two is heard of last', async () => {
    const old = recordOf('old', 1)
    const holder = recordOf('new', 1, { createdAt: 2 })
    cache.accept(old)
    cache.accept(holder)
    expect(cache.peekById('b')).to.equal(holder)
    cache.accept(recordOf('old', 2, { deleted: true }))
    expect(cache.peekById('b')).to.equal(holder)
    cache.accept(recordOf('older', 1, { createdAt: 0 }))
    expect(cache.peekById('b')).to.equal(holder)
  })

  it('takes earlier versions after a reset, and drops what is gone', async () => {
    cache.accept(recordOf('u', 5))
    cache.accept({ ...recordOf('v', 5), buffer: { ...recordOf('v', 5).buffer, bufferId: 'c' } })
    const resetting = cache.reset()
    script.asked[0]!.answer([recordOf('u', 4)])
    await turn()
    script.asked[1]!.answer([])
    await resetting
    expect(cache.peek('u')?.version).to.equal(4)
    expect(cache.peek('v')).to.equal(undefined)
    expect(cache.peekById('c')).to.equal(undefined)
    cache.accept(recordOf('u', 3))
    expect(cache.peek('u')?.version).to.equal(4)
  })

  it('drops what is not found when it is read again, and its id is the next buffer’s', async () => {
    cache.accept(recordOf('old', 1))
    const changing = cache.changed(['old'])
    script.asked[0]!.answer([])
    await changing
    expect(cache.peek('old')).to.equal(undefined)
    expect(cache.peekById('b')).to.equal(undefined)
    const loading = cache.loadById('b')
    script.asked[1]!.answer([recordOf('new', 1, { createdAt: 2 })])
    expect((await loading)?.uid).to.equal('new')
  })

  it('answers no id from what is known to have changed, though it could not be read again', async () => {
    cache.accept(recordOf('u', 1))
    const changing = cache.changed(['u']).catch((error) => error)
    expect(cache.peekById('b')).to.equal(undefined)
    script.asked[0]!.answer([new Error('away')])
    expect((await changing).message).to.equal('away')
    expect(cache.peekById('b')).to.equal(undefined)
    // The shards go on with the last configuration.
    expect(cache.peek('u')?.version).to.equal(1)
    const loading = cache.loadById('b')
    script.asked[1]!.answer([recordOf('u', 1)])
    expect(await loading).to.equal(cache.peekById('b'))
    expect(cache.peekById('b')?.version).to.equal(1)
  })

  it('drops what is gone after a reset, though another row cannot be read', async () => {
    cache.accept(recordOf('bad', 1))
    cache.accept({ ...recordOf('gone', 1), buffer: { ...recordOf('gone', 1).buffer, bufferId: 'c' } })
    const resetting = cache.reset().catch((error) => error)
    expect([cache.peekById('b'), cache.peekById('c')]).to.deep.equal([undefined, undefined])
    script.asked[0]!.answer([new Error('lost key')])
    await turn()
    script.asked[1]!.answer([])
    expect((await resetting).message).to.equal('lost key')
    expect(cache.peek('gone')).to.equal(undefined)
    expect(cache.peek('bad')?.version).to.equal(1)
  })

  it('gives an id back to an earlier buffer when the later one is gone after a reset', async () => {
    cache.accept(recordOf('early', 1))
    cache.accept(recordOf('late', 1, { createdAt: 2 }))
    const resetting = cache.reset()
    script.asked[0]!.answer([recordOf('early', 1)])
    await turn()
    script.asked[1]!.answer([])
    await resetting
    const loading = cache.loadById('b')
    script.asked[2]?.answer([recordOf('early', 1)])
    expect((await loading)?.uid).to.equal('early')
  })

  it('rejects for the row that cannot be read, and not for its neighbours', async () => {
    const first = cache.load('x')
    const [bad, good] = [cache.load('bad').catch((error) => error), cache.load('u')]
    script.asked[0]!.answer([])
    await first
    script.asked[1]!.answer([new Error('lost key'), recordOf('u', 1)])
    expect((await bad).message).to.equal('lost key')
    expect((await good)?.version).to.equal(1)
  })
})

describe('the cache of buffers, a minute after it last heard that it knows all changes', () => {
  let script: ReturnType<typeof scriptedRows>
  let cache: ReturnType<typeof createBufferCache>
  let clock: ManualClock
  beforeEach(() => {
    script = scriptedRows()
    clock = new ManualClock()
    cache = createBufferCache({ rows: script.rows, clock })
    cache.accept(recordOf('u', 1))
    clock.advance(30_000)
    cache.caughtUp(momentOf(clock))
    clock.advance(60_000)
  })

  it('answers from memory until then, and again once it has caught up', async () => {
    expect(cache.peekById('b')?.uid).to.equal('u')
    clock.advance(1)
    expect(cache.peekById('b')).to.equal(undefined)
    expect(cache.peek('u')?.uid).to.equal('u')
    // What was known a while ago is no news.
    cache.caughtUp({ monotonic: clock.monotonic() - 60_001, wall: clock.now() - 60_001 })
    expect(cache.peekById('b')).to.equal(undefined)
    cache.caughtUp(momentOf(clock))
    expect(cache.peekById('b')?.uid).to.equal('u')
  })

  it('counts the time for which the machine was suspended', () => {
    cache.caughtUp(momentOf(clock))
    clock.suspend(60_001)
    expect(cache.peekById('b')).to.equal(undefined)
  })

  it('asks for each id, and answers what it reads', async () => {
    clock.advance(1)
    for (const version of [1, 2]) {
      const loading = cache.loadById('b')
      script.asked.at(-1)!.answer([recordOf('u', version)])
      expect((await loading)?.version).to.equal(version)
    }
    const away = cache.loadById('b').catch((error) => error)
    script.asked.at(-1)!.answer([new Error('away')])
    expect((await away).message).to.equal('away')
    expect(script.asked).to.have.length(3)
  })

  it('finds that a buffer is gone, and who has its id now', async () => {
    clock.advance(1)
    const gone = cache.loadById('b')
    script.asked[0]!.answer([])
    expect(await gone).to.equal(undefined)
    const anew = cache.loadById('b')
    script.asked[1]!.answer([recordOf('new', 1, { createdAt: 2 })])
    expect((await anew)?.uid).to.equal('new')
  })
})
