import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createKeyCache } from '../../internal/auth/key-cache.ts'
import { hashOf } from '../../internal/auth/secret.ts'
import type { KnownKey } from '../../internal/domain/model.ts'
import type { KeyDirectory } from '../../internal/ingest/ports.ts'
import { createApiKeyRows } from '../../internal/postgres/api-keys.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { momentOf } from '../../internal/runtime/moment.ts'
import { type AccountsNode, accountsNode, principal } from '../support/accounts.ts'

const secretOf = (n: number) => `svk_${n.toString(16).padStart(48, '0')}`

describe('the cache of API keys on Postgres', () => {
  let node: AccountsNode
  const acme = principal('acme')
  beforeEach(async () => {
    node = await accountsNode()
    await node.customers.ensure('acme')
  })
  afterEach(() => node.close())

  it('answers a key at once after its creation on another node, though it was refused before', async () => {
    const directory: KeyDirectory = node.keyCache
    const secret = secretOf(1)
    expect(await directory.authenticate(secret)).to.equal(undefined)
    const second = await accountsNode(node.url)
    await second.apiKeys.ensureOwnerKey('acme', secret)
    expect(await directory.authenticate(secret)).to.include({ customerId: 'acme', role: 'owner' })
    await second.close()
  })

  it('writes last uses in one statement, at the interval and at the end, and never backwards', async () => {
    const { secret } = await node.apiKeys.create(acme, { name: 'used' })
    const clock = steppedClock(1_700_000_000_000)
    const cache = createKeyCache({
      rows: createApiKeyRows(node.db),
      clock,
      onError: (error) => expect.fail(String(error)),
    })
    const lastUse = async () => (await node.apiKeys.list(acme))[0]?.lastUsedAt
    await cache.authenticate(secret)
    expect(await lastUse()).to.equal(null)
    clock.advance(5_000)
    await cache.authenticate(secret)
    clock.advance(30_000)
    await cache.stop()
    expect(await lastUse()).to.equal(new Date(1_700_000_005_000).toISOString())
    clock.set(1_600_000_000_000)
    await cache.authenticate(secret)
    await cache.stop()
    expect(await lastUse()).to.equal(new Date(1_700_000_005_000).toISOString())
  })

  it('is asked without waiting only for keys that it knows and that are not revoked', async () => {
    const { secret, keyId } = await node.apiKeys.create(acme, { name: 'peeked' })
    expect(node.keyCache.peek(secret)).to.equal(undefined)
    await node.keyCache.authenticate(secret)
    expect(node.keyCache.peek(secret)).to.include({ keyId })
    await node.apiKeys.revoke(acme, keyId)
    expect(node.keyCache.peek(secret)).to.equal(undefined)
    await node.keyCache.authenticate(secret)
    expect(node.keyCache.peek(secret)).to.equal(undefined)
  })

  it('names the key of a secret that it has just refused, when it was revoked, and no other', async () => {
    const { secret, keyId } = await node.apiKeys.create(acme, { name: 'old' })
    await node.keyCache.authenticate(secret)
    expect(node.keyCache.revoked(secret), 'while it is good').to.equal(undefined)
    await node.apiKeys.revoke(acme, keyId)
    expect(await node.keyCache.authenticate(secret)).to.equal(undefined)
    expect(node.keyCache.revoked(secret)).to.include({ keyId, customerId: 'acme' })
    expect(await node.keyCache.authenticate(secretOf(9))).to.equal(undefined)
    for (const unknown of [secretOf(9), 'svk_', ''])
      expect(node.keyCache.revoked(unknown)).to.equal(undefined)
  })

  it('counts a last use as no change of configuration', async () => {
    const { secret } = await node.apiKeys.create(acme, { name: 'used' })
    await node.keyCache.authenticate(secret)
    await node.keyCache.stop()
    expect((await node.apiKeys.list(acme))[0]?.lastUsedAt).to.be.a('string')
    expect([...(await node.db`SELECT * FROM config_changes`)]).to.deep.equal([])
  })
})

describe('the cache of API keys', () => {
  function scripted() {
    const asked: { hashes: readonly string[]; answer: (found: [string, KnownKey][]) => void }[] = []
    const failures: unknown[] = []
    let writes: (uses: ReadonlyMap<string, number>) => Promise<void> = async () => {}
    const clock = steppedClock(1_000)
    const cache = createKeyCache({
      rows: {
        byHashes: (hashes) =>
          new Promise((resolve) => {
            asked.push({ hashes, answer: (found) => resolve(new Map(found)) })
          }),
        markUsed: (uses) => writes(uses),
      },
      clock,
      onError: (error) => failures.push(error),
    })
    return { asked, cache, clock, failures, onWrite: (write: typeof writes) => (writes = write) }
  }

  const full = (keyId: string, revokedAt: string | null): KnownKey => ({
    keyId,
    customerId: 'acme',
    name: 'Deploy',
    keyPrefix: 'svk_0000',
    role: 'member',
    createdAt: 'then',
    revokedAt,
    lastUsedAt: 'later',
    suspended: false,
  })
  const key = (keyId: string, revokedAt: string | null = null) => ({ keyId, revokedAt }) as KnownKey

  it('asks one question at a time, however many wrong keys are tried', async () => {
    const { asked, cache } = scripted()
    const tries = Array.from({ length: 500 }, (_, n) => cache.authenticate(secretOf(n)))
    expect(asked.map(({ hashes }) => hashes.length)).to.deep.equal([1])
    asked[0]?.answer([])
    await tries[0]
    expect(asked.map(({ hashes }) => hashes.length)).to.deep.equal([1, 499])
    asked[1]?.answer([])
    expect(new Set(await Promise.all(tries))).to.deep.equal(new Set([undefined]))
  })

  it('asks nothing about what has not the form of a key', async () => {
    const { asked, cache } = scripted()
    const hex = 'a'.repeat(48)
    for (const text of [
      '',
      'svk_',
      `svk_${hex.slice(1)}`,
      `svk_${hex}a`,
      `svk_${hex.toUpperCase()}`,
      `svk_${hex}\n`,
    ]) {
      expect(await cache.authenticate(text)).to.equal(undefined)
    }
    expect(asked).to.deep.equal([])
  })

  it('refuses a key that was revoked while it was being read', async () => {
    const { asked, cache } = scripted()
    const attempt = cache.authenticate(secretOf(1))
    cache.changed(['k'])
    asked[0]?.answer([[hashOf(secretOf(1)), key('k')]])
    await turn()
    asked[1]?.answer([[hashOf(secretOf(1)), key('k', 'now')]])
    expect(await attempt).to.equal(undefined)
  })

  it('reads a known key again only after it changed', async () => {
    const { asked, cache } = scripted()
    const answer = (index: number) => asked[index]?.answer([[hashOf(secretOf(1)), key('k')]])
    for (const change of [() => {}, () => cache.changed(['k']), () => cache.reset()]) {
      change()
      const before = asked.length
      const attempt = cache.authenticate(secretOf(1))
      expect(asked.length - before).to.equal(1)
      answer(before)
      expect(await attempt).to.include({ keyId: 'k' })
      expect(await cache.authenticate(secretOf(1))).to.include({ keyId: 'k' })
      expect(asked.length - before).to.equal(1)
    }
  })

  it('reads a known key for each use, a minute after it last heard that it knows all changes', async () => {
    const { asked, cache, clock } = scripted()
    const secret = secretOf(1)
    const use = async (record: KnownKey) => {
      const attempt = cache.authenticate(secret)
      asked.at(-1)?.answer([[hashOf(secret), record]])
      return await attempt
    }
    await use(key('k'))
    cache.caughtUp(momentOf(clock))
    clock.advance(60_000)
    expect(cache.peek(secret)).to.include({ keyId: 'k' })
    clock.advance(1)
    expect(cache.peek(secret)).to.equal(undefined)
    expect(await use(key('k'))).to.include({ keyId: 'k' })
    expect(await use(key('k', 'now'))).to.equal(undefined)
    expect(asked).to.have.length(3)
    cache.caughtUp(momentOf(clock))
    expect(await cache.authenticate(secret)).to.equal(undefined)
    expect(asked).to.have.length(3)
  })

  it('drops a key whose row is gone, though nobody told of it', async () => {
    const { asked, cache, clock } = scripted()
    const secret = secretOf(1)
    const first = cache.authenticate(secret)
    asked[0]?.answer([[hashOf(secret), key('k')]])
    expect(await first).to.include({ keyId: 'k' })
    clock.advance(60_001)
    const later = cache.authenticate(secret)
    asked[1]?.answer([])
    expect(await later).to.equal(undefined)
    cache.caughtUp(momentOf(clock))
    expect(cache.peek(secret)).to.equal(undefined)
    const again = cache.authenticate(secret)
    asked[2]?.answer([])
    expect(await again).to.equal(undefined)
  })

  it('keeps of a revoked key whose it is, and nothing that is large or that it could reach', async () => {
    const { asked, cache } = scripted()
    const secret = secretOf(1)
    const attempt = cache.authenticate(secret)
    const projectIds = Array.from({ length: 100 }, (_, n) => `project-${n}`)
    asked[0]?.answer([[hashOf(secret), { ...full('k', 'now'), projectIds }]])
    expect(await attempt).to.equal(undefined)
    expect(cache.revoked(secret)).to.deep.equal({
      ...full('k', 'now'),
      name: '',
      keyPrefix: '',
      projectIds: [],
      createdAt: '',
      lastUsedAt: null,
    })
  })

  for (const revokedAt of [null, 'now']) {
    it(`forgets what it kept first, however many ${revokedAt ? 'revoked' : 'usable'} keys are presented`, async () => {
      const { asked, cache } = scripted()
      const count = 40_000
      const tries = Array.from({ length: count }, (_, n) => cache.authenticate(secretOf(n)))
      const byHash = new Map(
        Array.from({ length: count }, (_, n) => [hashOf(secretOf(n)), full(`k${n}`, revokedAt)]),
      )
      for (let answered = 0, done = 0; done < count; answered++) {
        const { hashes, answer } = asked[answered]!
        answer(hashes.map((hash) => [hash, byHash.get(hash)!]))
        await turn()
        done += hashes.length
      }
      const outcomes = await Promise.all(tries)
      expect(outcomes.filter((each) => each !== undefined)).to.have.length(revokedAt ? 0 : count)
      const isKnown = (n: number) =>
        (revokedAt ? cache.revoked(secretOf(n)) : cache.peek(secretOf(n))) !== undefined
      const known = tries.map((_, n) => isKnown(n))
      expect(known.filter(Boolean).length).to.be.within(20_000, 35_000)
      expect(known.indexOf(true), 'all behind the first one').to.equal(known.lastIndexOf(false) + 1)
      const before = asked.length
      const again = cache.authenticate(secretOf(0))
      asked[before]?.answer([[hashOf(secretOf(0)), full('k0', revokedAt)]])
      expect((await again)?.keyId).to.equal(revokedAt ? undefined : 'k0')
      expect(isKnown(0)).to.equal(true)
    })
  }

  it('keeps last uses that could not be written', async () => {
    const { asked, cache, clock, failures, onWrite } = scripted()
    const attempt = cache.authenticate(secretOf(1))
    asked[0]?.answer([[hashOf(secretOf(1)), key('k')]])
    await attempt
    onWrite(() => Promise.reject(new Error('away')))
    clock.advance(30_000)
    await turn()
    expect(failures).to.have.length(1)
    const written: [string, number][] = []
    onWrite(async (uses) => void written.push(...uses))
    await cache.stop()
    expect(written).to.deep.equal([['k', 1_000]])
  })

  it('lets no use that could not be written replace a later one', async () => {
    const { asked, cache, clock, failures, onWrite } = scripted()
    const attempt = cache.authenticate(secretOf(1))
    asked[0]?.answer([[hashOf(secretOf(1)), key('k')]])
    await attempt
    const write = Promise.withResolvers<void>()
    onWrite(() => write.promise)
    clock.advance(30_000)
    await cache.authenticate(secretOf(1))
    write.reject(new Error('away'))
    await turn()
    expect(failures).to.have.length(1)
    const written: [string, number][] = []
    onWrite(async (uses) => void written.push(...uses))
    await cache.stop()
    expect(written).to.deep.equal([['k', 31_000]])
  })
})

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Time and timers move by hand. */
function steppedClock(start: number): Clock & { advance(ms: number): void; set(at: number): void } {
  let at = start
  let monotonic = 0
  let timers: { due: number; task: () => void }[] = []
  return {
    now: () => at,
    monotonic: () => monotonic,
    after(ms, task) {
      const timer = { due: monotonic + ms, task }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
    set: (to) => {
      at = to
    },
    advance(ms) {
      at += ms
      monotonic += ms
      const due = timers.filter((timer) => timer.due <= monotonic)
      timers = timers.filter((timer) => timer.due > monotonic)
      for (const { task } of due) task()
    },
  }
}
