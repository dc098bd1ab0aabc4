import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Cache } from '../../../operator/controller/cache.ts'
import type { Change } from '../../../operator/controller/ports.ts'

interface TestObject {
  metadata: { namespace: string; name: string; uid: string; resourceVersion: string }
  secrets: string[]
}

function object(
  name: string,
  options: { uid?: string; version?: number; secrets?: string[]; in?: string } = {},
): TestObject {
  const { uid = name, version = 1, secrets = [], in: namespace = 'ns' } = options
  return { metadata: { namespace, name, uid, resourceVersion: String(version) }, secrets }
}

function fixture() {
  const faults: string[] = []
  const changes: string[] = []
  const cache = new Cache<TestObject>({
    indexers: {
      secret: ({ metadata, secrets }) => secrets.map((name) => `${metadata.namespace}/${name}`),
    },
    onFault: (error, key) => faults.push(`${key}: ${(error as Error).message}`),
  })
  cache.subscribe((change) => changes.push(told(change)))
  return { cache, changes, faults, names: () => cache.list().map(({ metadata }) => metadata.name) }
}

function told({ key, before, after }: Change<TestObject>): string {
  const version = (of: TestObject | undefined) =>
    of ? `${of.metadata.uid}@${of.metadata.resourceVersion}` : '-'
  return `${key} ${version(before)} ${version(after)}`
}

describe('a store', () => {
  it('tells what is new, changed and gone', () => {
    const { cache, changes } = fixture()
    cache.put(object('a'))
    cache.put(object('a', { version: 2 }))
    cache.remove(object('a', { version: 3 }))
    expect(changes).to.deep.equal(['ns/a - a@1', 'ns/a a@1 a@2', 'ns/a a@2 -'])
    expect([cache.get('ns/a'), cache.size]).to.deep.equal([undefined, 0])
  })

  it('tells how what is gone was removed, where that was seen', () => {
    const { cache } = fixture()
    const lasts: (string | undefined)[] = []
    cache.subscribe(({ after, last }) => {
      if (after === undefined) lasts.push(last?.metadata.resourceVersion)
    })
    for (const name of ['a', 'b']) cache.put(object(name))
    cache.remove(object('a', { version: 3 }))
    cache.replace([], undefined)
    expect(lasts).to.deep.equal(['3', undefined])
  })

  it('finds by index what names a value now, and nothing that did', () => {
    const { cache } = fixture()
    const found = (name: string) => cache.byIndex('secret', `ns/${name}`).map(({ metadata }) => metadata.name)
    cache.put(object('a', { secrets: ['key', 'signing'] }))
    cache.put(object('b', { secrets: ['key'] }))
    cache.put(object('c', { secrets: ['key'], in: 'other' }))
    expect([found('key'), found('signing')]).to.deep.equal([['a', 'b'], ['a']])
    cache.put(object('a', { version: 2, secrets: ['signing'] }))
    cache.remove(object('b'))
    expect([found('key'), found('signing'), found('none')]).to.deep.equal([[], ['a'], []])
    expect(() => cache.byIndex('project', 'p')).to.throw('no index project')
  })

  it('shows a change to its listeners before they hear of it', () => {
    const { cache } = fixture()
    const seen: unknown[] = []
    cache.subscribe(({ key }) =>
      seen.push(cache.get(key)?.metadata.resourceVersion, cache.byIndex('secret', 'ns/s').length),
    )
    cache.put(object('a', { secrets: ['s'] }))
    cache.remove(object('a'))
    expect(seen).to.deep.equal(['1', 1, undefined, 0])
  })

  it('tells of a resource that took the name of another as gone and new', () => {
    const { cache, changes } = fixture()
    cache.put(object('a', { uid: 'old' }))
    cache.put(object('a', { uid: 'new', version: 5 }))
    cache.replace([object('a', { uid: 'newer', version: 9 })], undefined)
    expect(changes).to.deep.equal([
      'ns/a - old@1',
      'ns/a old@1 -',
      'ns/a - new@5',
      'ns/a new@5 -',
      'ns/a - newer@9',
    ])
  })

  it('keeps a resource whose predecessor is told as gone late', () => {
    const { cache } = fixture()
    cache.put(object('a', { uid: 'new' }))
    cache.remove(object('a', { uid: 'old' }))
    expect(cache.get('ns/a')?.metadata.uid).to.equal('new')
  })

  it('takes a list for the whole truth about its namespace, and tells only what it changed', () => {
    const { cache, changes, names } = fixture()
    for (const each of [object('a'), object('b'), object('c'), object('x', { in: 'other' })]) cache.put(each)
    changes.length = 0
    cache.replace([object('a'), object('b', { version: 2 }), object('d')], 'ns')
    expect(changes).to.deep.equal(['ns/c c@1 -', 'ns/b b@1 b@2', 'ns/d - d@1'])
    expect(names()).to.have.members(['a', 'b', 'd', 'x'])
  })

  it('leaves out a resource that cannot be indexed, and goes on with the others', () => {
    const { cache, faults, names } = fixture()
    const broken = { ...object('b'), secrets: undefined as unknown as string[] }
    cache.replace([object('a'), broken, object('c')], undefined)
    expect(names()).to.deep.equal(['a', 'c'])
    expect(faults).to.have.length(1)
    expect(faults[0]).to.match(/^ns\/b: /)
  })

  it('tells the other listeners when one throws', () => {
    const { cache, faults } = fixture()
    const heard: string[] = []
    cache.subscribe(() => {
      throw new Error('deaf')
    })
    cache.subscribe(({ key }) => heard.push(key))
    cache.put(object('a'))
    expect([heard, faults]).to.deep.equal([['ns/a'], ['ns/a: deaf']])
  })
})
