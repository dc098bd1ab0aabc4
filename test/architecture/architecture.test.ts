import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { circlesOf } from './circles.ts'
import { breachesOfFolders } from './folders.ts'
import { breachesOfInjectedTime } from './injected-time.ts'
import { breachesOfLayers } from './layers.ts'
import { readSources } from './sources.ts'
import { breachesOfStyle } from './style.ts'
import { breachesOfWords } from './words.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const FIXTURE = join(import.meta.dirname, 'fixture')
const FOLDERS = ['cmd', 'internal', 'operator']
/** Not what is built of them. */
const PACKAGES = 'packages/*/src'

describe('the layout', () => {
  it('has no import against its direction', () => {
    expect(breachesOfLayers(readSources(ROOT, [...FOLDERS, PACKAGES]))).to.deep.equal([])
  })

  it('has no import against the order of the rooms', () => {
    expect(breachesOfFolders(readSources(ROOT, FOLDERS))).to.deep.equal([])
  })

  it('has no circles', () => {
    const sources = readSources(ROOT, [...FOLDERS, PACKAGES, 'bench', 'test'])
    expect(
      circlesOf(sources.filter(({ path }) => !path.startsWith('test/architecture/fixture/'))),
    ).to.deep.equal([])
  })

  it('names nothing by a word that was given up', () => {
    const sources = readSources(ROOT, [...FOLDERS, PACKAGES, 'bench', 'test'])
    expect(
      breachesOfWords(sources.filter(({ path }) => !path.startsWith('test/architecture/'))),
    ).to.deep.equal([])
  })

  it('writes members, objects and constants one way', () => {
    const sources = readSources(ROOT, [...FOLDERS, PACKAGES, 'bench', 'test'])
    expect(
      breachesOfStyle(sources.filter(({ path }) => !path.startsWith('test/architecture/'))),
    ).to.deep.equal([])
  })

  it('leaves time and randomness to whoever runs the pure parts', () => {
    expect(breachesOfInjectedTime(readSources(ROOT, FOLDERS))).to.deep.equal([])
  })
})

describe('the checks of the layout', () => {
  it('tell each kind of import against the direction, and nothing else', () => {
    expect(breachesOfLayers(readSources(FIXTURE, [...FOLDERS, PACKAGES]))).to.deep.equal([
      'internal/accounts/sibling.ts imports internal/billing/ports.ts: a use case imports no sibling',
      'internal/buffers/configured.ts imports cmd/config/config.ts: only cmd joins the parts',
      'internal/delivery/machine.ts imports internal/group/machine.ts: only shards run the group machine',
      'internal/domain/outward.ts imports internal/group/machine.ts: domain imports nothing but itself and pure modules',
      'internal/domain/reading.ts imports node:fs: domain imports nothing but itself and pure modules',
      'internal/group/fetching.ts imports undici: group imports domain and pure modules only',
      'internal/http/adapter.ts imports internal/postgres/rows.ts: an adapter imports no other adapter but its ports',
      'internal/ingest/adapter.ts imports internal/nats/append.ts: a use case imports no adapter',
      'internal/ingest/library.ts imports koa: a use case imports no library of an adapter',
      'internal/runtime/knowing.ts imports internal/shard/ports.ts: runtime imports domain only',
      'internal/shard/dynamic.ts imports internal/postgres/rows.ts: a use case imports no adapter',
      'operator/insider.ts imports internal/accounts/sibling.ts: the operator knows the service by its interface',
      'operator/packed.ts imports @penstock-local/client: the service imports no package',
      'packages/client/src/insider.ts imports internal/accounts/sibling.ts: a package imports nothing of the service',
      'packages/client/src/insider.ts imports packages/receiver/src/index.ts: a package imports another one by its name',
    ])
  })

  it('tell real time and randomness in the pure parts, but not in comments or elsewhere', () => {
    expect(breachesOfInjectedTime(readSources(FIXTURE, FOLDERS))).to.deep.equal([
      'internal/domain/dated.ts:2 uses new Date()',
      'internal/group/random.ts:2 uses Math.random',
      'internal/shard/timed.ts:1 uses setImmediate',
      "internal/shard/timed.ts:1 uses 'node:timers/promises'",
      'internal/shard/timed.ts:4 uses Date.now',
      'internal/shard/timed.ts:5 uses setTimeout',
      'internal/shard/timed.ts:6 uses setInterval',
    ])
  })

  it('tell imports against the order of the rooms, and folders that are none', () => {
    expect(breachesOfFolders(readSources(FIXTURE, FOLDERS))).to.deep.equal([
      'internal/shard/attic/stray.ts is in no room of internal/shard',
      'internal/shard/journal/upward.ts imports internal/shard/held/lower.ts: journal stands below held',
    ])
  })

  it('tell circles, also those that types close, and no more', () => {
    expect(circlesOf(readSources(FIXTURE, FOLDERS))).to.deep.equal([
      'internal/shard/held/first.ts ⇄ internal/shard/held/second.ts ⇄ internal/shard/held/third.ts',
    ])
  })

  it('tell names by words that were given up, and leave prose alone', () => {
    expect(breachesOfWords(readSources(FIXTURE, FOLDERS))).to.deep.equal([
      'internal/shard/held/twin-list.ts: twin-list.ts (duplicate)',
      'internal/shard/held/twin-list.ts: findTwin (duplicate)',
      'internal/shard/held/twin-list.ts: frame (message)',
    ])
  })

  it('tell a second way to write members, objects and constants', () => {
    expect(breachesOfStyle(readSources(FIXTURE, ['internal/runtime']))).to.deep.equal([
      'internal/runtime/two-ways.ts:9 private since = 0: write #name',
      'internal/runtime/two-ways.ts:15 protected left: write #name',
      'internal/runtime/two-ways.ts:17 ...{: write the members themselves',
      'internal/runtime/two-ways.ts:2 const waitMs: a constant is UPPER_CASE',
      'internal/runtime/two-ways.ts:4 export const greeting: a constant is UPPER_CASE',
    ])
  })

  it('refuse to check nothing', () => {
    expect(() => readSources(FIXTURE, ['nowhere'])).to.throw('no sources')
  })
})
