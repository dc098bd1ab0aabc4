import { expect } from 'chai'
import { describe, it } from 'mocha'
import { LONG_MS, OF_ONE, SLOW_MS, Turns, WORKERS } from '../../../operator/controller/turns.ts'
import { seededFractions } from '../../support/seeded.ts'

/** Keys that begin at `now` until none may. */
function begin(turns: Turns, now = 0): string[] {
  const keys: string[] = []
  for (let key = turns.next(now); key !== undefined; key = turns.next(now)) keys.push(key)
  return keys
}

function addMany(turns: Turns, namespace: string, keys: number): void {
  for (let index = 0; index < keys; index++) turns.add(`${namespace}/${index}`)
}

function countOf(keys: readonly string[], namespace: string): number {
  return keys.filter((key) => key.startsWith(`${namespace}/`)).length
}

/** Turns that know some namespaces to be quick. */
function knowing(...namespaces: string[]): Turns {
  const turns = new Turns(WORKERS)
  for (const namespace of namespaces) {
    turns.add(`${namespace}/known`)
    turns.end(turns.next(0)!, 0)
  }
  return turns
}

describe('turns', () => {
  it('go around the namespaces, and within one in the order of its keys', () => {
    const turns = knowing('a', 'b', 'c')
    for (const key of ['a/1', 'a/2', 'a/3', 'b/1', 'c/1', 'c/2']) turns.add(key)
    expect(begin(turns)).to.deep.equal(['a/1', 'b/1', 'c/1', 'a/2', 'c/2', 'a/3'])
  })

  it('give the only namespace its most, and no more', () => {
    const turns = knowing('a')
    addMany(turns, 'a', 100)
    expect(begin(turns)).to.have.length(OF_ONE)
    expect(turns.depth).to.equal(100 - OF_ONE)
    turns.end('a/0', 10)
    expect(begin(turns, 10)).to.deep.equal(['a/4'])
  })

  it('keep workers for namespaces that are known to be quick, however many new ones there are', () => {
    const turns = knowing('known')
    for (let namespace = 0; namespace < 100; namespace++) addMany(turns, `new-${namespace}`, 10)
    expect(begin(turns, 10)).to.have.length((WORKERS * 3) / 4)
    addMany(turns, 'known', 10)
    expect(countOf(begin(turns, 10), 'known')).to.equal(2)
  })

  it('leave as many workers free as each of some greedy namespaces has', () => {
    for (let greedy = 1; greedy <= 5; greedy++) {
      const names = Array.from({ length: greedy }, (_, index) => `greedy-${index}`)
      const turns = knowing(...names, 'late')
      for (const name of names) addMany(turns, name, 100)
      const running = begin(turns)
      const free = WORKERS - running.length
      for (const name of names) expect(countOf(running, name), `of ${greedy}`).to.be.within(1, free + 1)
      turns.add('late/1')
      expect(turns.next(0), `beside ${greedy}`).to.equal('late/1')
    }
  })

  it('give all slow namespaces together half of the workers', () => {
    const turns = new Turns(WORKERS)
    for (let namespace = 0; namespace < 12; namespace++) addMany(turns, `slow-${namespace}`, 10)
    for (const key of begin(turns)) turns.end(key, LONG_MS)
    expect(begin(turns, LONG_MS)).to.have.length(WORKERS / 2)
    turns.add('new/0')
    expect(begin(turns, LONG_MS)).to.deep.equal(['new/0'])
  })

  it('begin one pass of a namespace that is not known yet', () => {
    const turns = new Turns(WORKERS)
    addMany(turns, 'new', 10)
    expect(begin(turns)).to.deep.equal(['new/0'])
    turns.end('new/0', LONG_MS - 1)
    expect(begin(turns, LONG_MS - 1)).to.have.length(OF_ONE)
  })

  it('take a namespace for slow while a pass lasts, and for a while after', () => {
    const turns = knowing('a', 'b', 'c')
    for (const name of ['a', 'b']) addMany(turns, name, OF_ONE)
    expect(begin(turns)).to.have.length(2 * OF_ONE)
    turns.add('c/1')
    // Half of the workers have slow ones, c is none of them.
    expect(begin(turns, LONG_MS)).to.deep.equal(['c/1'])
    turns.end('c/1', 2 * LONG_MS)
    turns.add('c/2')
    expect(begin(turns, 2 * LONG_MS + SLOW_MS - 1)).to.deep.equal([])
    expect(begin(turns, 2 * LONG_MS + SLOW_MS)).to.deep.equal(['c/2'])
  })

  it('keep no key waiting for ever, whatever begins and ends', () => {
    for (let seed = 1; seed <= 30; seed++) walk(seed)
  })
})

/** Namespaces of many keys whose passes take 0 to 3 s: all keys have begun in the end, and the bounds held. */
function walk(seed: number): void {
  const random = seededFractions(seed)
  const turns = new Turns(WORKERS)
  const owed = new Set<string>()
  for (let key = 0; key < 200; key++) owed.add(`ns-${Math.floor(random() ** 2 * 12)}/${key}`)
  for (const key of owed) turns.add(key)
  const running = new Map<string, number>()
  for (let now = 0; turns.depth > 0 || running.size > 0; now += 100) {
    for (const key of begin(turns, now)) {
      owed.delete(key)
      running.set(key, now + random() * 3_000)
    }
    const keys = [...running.keys()]
    expect(keys.length, `seed ${seed}`).to.be.within(1, WORKERS)
    for (const key of keys) expect(countOf(keys, key.split('/')[0]!), `seed ${seed}`).to.be.at.most(OF_ONE)
    for (const [key, until] of running) {
      if (until > now) continue
      running.delete(key)
      turns.end(key, now)
    }
    if (turns.depth === 0) for (const key of running.keys()) turns.end(key, now)
    if (turns.depth === 0) running.clear()
  }
  expect([...owed], `seed ${seed}`).to.deep.equal([])
}
