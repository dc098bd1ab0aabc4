import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { createBufferCache } from '../../internal/buffers/cache.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { recordOf, scriptedRows } from './scripted-rows.ts'

describe('the cache of buffers that are deleted', () => {
  let script: ReturnType<typeof scriptedRows>
  let cache: ReturnType<typeof createBufferCache>
  beforeEach(() => {
    script = scriptedRows()
    cache = createBufferCache({ rows: script.rows, clock: systemClock() })
  })
  const deletedOf = (uid: string, version = 2) => recordOf(uid, version, { deleted: true })

  it('are not kept when no shard holds them, however many come and go', () => {
    for (let n = 0; n < 1_000; n++) {
      cache.accept(recordOf(`u${n}`, 1, { createdAt: n }))
      cache.accept(deletedOf(`u${n}`))
    }
    const kept = Array.from({ length: 1_000 }, (_, n) => cache.peek(`u${n}`)).filter(Boolean)
    expect(kept).to.deep.equal([])
  })

  it('are not taken for live ones by what was read or committed before, though nothing of them is kept', async () => {
    const [byId, byUid] = [cache.loadById('b'), cache.load('u')]
    cache.accept(recordOf('u', 2))
    cache.accept(deletedOf('u', 3))
    for (const version of [1, 2]) cache.accept(recordOf('u', version))
    for (const { answer } of script.asked) answer([recordOf('u', 2)])
    expect([await byId, await byUid]).to.deep.equal([undefined, undefined])
    expect([cache.peekById('b'), cache.peek('u')]).to.deep.equal([undefined, undefined])
  })

  it('are read again for a shard that comes to hold them, and stay while it does', async () => {
    const held = new Set<string>()
    cache.onChange(
      () => {},
      (uid) => held.has(uid),
    )
    cache.accept(recordOf('u', 1))
    cache.accept(deletedOf('u'))
    held.add('u')
    const loading = cache.load('u')
    script.asked[0]!.answer([deletedOf('u')])
    expect(await loading).to.include({ version: 2, deleted: true })
    expect(cache.peek('u')).to.include({ version: 2 })
    for (let n = 0; n < 1_000; n++) cache.accept(deletedOf(`x${n}`))
    expect(cache.peek('u')).to.include({ version: 2 })
  })

  it('stay while a shard holds them, which is told of their changes, and not much longer', async () => {
    const held = new Set(Array.from({ length: 300 }, (_, n) => `u${n}`))
    const told: BufferRecord[] = []
    cache.onChange(
      (record) => told.push(record),
      (uid) => held.has(uid),
    )
    for (const uid of held) {
      cache.accept(recordOf(uid, 1))
      cache.accept(deletedOf(uid))
    }
    const changing = cache.changed(['u7'])
    script.asked[0]!.answer([{ ...deletedOf('u7', 3), suspended: true }])
    await changing
    expect(told.at(-1)).to.include({ uid: 'u7', version: 3, suspended: true })
    const known = () => [...held].filter((uid) => cache.peek(uid)).length
    expect(known()).to.equal(300)
    const before = [...held]
    held.clear()
    for (let n = 0; n < 1_000; n++) {
      held.clear()
      held.add(`y${n}`)
      cache.accept(deletedOf(`y${n}`))
    }
    expect(before.filter((uid) => cache.peek(uid))).to.deep.equal([])
  })

  it('may live again in a database that was restored', async () => {
    cache.accept(recordOf('u', 4))
    cache.accept(deletedOf('u', 5))
    await cache.reset()
    const loading = cache.loadById('b')
    script.asked[0]!.answer([recordOf('u', 4)])
    expect((await loading)?.version).to.equal(4)
  })
})

describe('the cache of buffers where no shards run', () => {
  let script: ReturnType<typeof scriptedRows>
  let cache: ReturnType<typeof createBufferCache>
  beforeEach(() => {
    script = scriptedRows()
    cache = createBufferCache({ rows: script.rows, clock: systemClock() })
  })

  it('keeps nothing of deleted buffers, whoever tells of the deletion', async () => {
    for (const uid of ['here', 'elsewhere']) cache.accept(recordOf(uid, 1, { createdAt: uid.length }))
    cache.accept(recordOf('here', 2, { deleted: true }))
    expect(cache.peek('here')).to.equal(undefined)
    expect(cache.peekById('b')?.uid).to.equal('elsewhere')
    const changing = cache.changed(['elsewhere'])
    script.asked[0]!.answer([recordOf('elsewhere', 2, { deleted: true })])
    await changing
    expect(cache.peek('elsewhere')).to.equal(undefined)
    expect(cache.peekById('b')).to.equal(undefined)
  })

  it('brings none back by a read that began before the deletion', async () => {
    cache.accept(recordOf('v', 1))
    const loading = cache.loadById('c')
    const deleted = recordOf('u', 2, { deleted: true })
    cache.accept({ ...deleted, buffer: { ...deleted.buffer, bufferId: 'c' } })
    const stale = recordOf('u', 1)
    script.asked[0]!.answer([{ ...stale, buffer: { ...stale.buffer, bufferId: 'c' } }])
    expect(await loading).to.equal(undefined)
    expect([cache.peek('u'), cache.peekById('c')]).to.deep.equal([undefined, undefined])
    expect(cache.peekById('b')?.uid).to.equal('v')
  })

  it('takes one back when the database went back to before its deletion', async () => {
    cache.accept(recordOf('u', 2, { deleted: true }))
    await cache.reset()
    const loading = cache.loadById('b')
    script.asked[0]!.answer([recordOf('u', 1)])
    expect((await loading)?.uid).to.equal('u')
  })
})
