import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createKeyAuthentication } from '../../internal/auth/authentication.ts'
import type { Role } from '../../internal/domain/model.ts'
import { createApiKeyRows } from '../../internal/postgres/api-keys.ts'
import { type AccountsNode, accountsNode, principal, refusal } from '../support/accounts.ts'

describe('API keys', () => {
  let node: AccountsNode
  let accounts = 0
  before(async () => {
    node = await accountsNode()
  })
  after(() => node.close())

  /** A customer with the projects p and q of its own, and its owner. */
  async function account() {
    const customerId = `account-${accounts++}`
    await node.customers.ensure(customerId)
    const owner = principal(customerId)
    const projects = ['p', 'q'].map((letter) => `${customerId}-${letter}`) as [string, string]
    for (const projectId of projects) await node.projects.create(owner, { projectId, name: 'x' })
    return { customerId, owner, projects }
  }

  it('shows the secret once, in the documented form, and works at once', async () => {
    const { owner, customerId } = await account()
    const created = await node.apiKeys.create(owner, { name: 'deploy' })
    expect(created.secret).to.match(/^svk_[0-9a-f]{48}$/)
    expect(created).to.include({ name: 'deploy', role: 'owner', keyPrefix: created.secret.slice(0, 8) })
    expect(new Date(created.createdAt).toISOString()).to.equal(created.createdAt)
    expect(created).not.to.have.property('projectIds')
    const keys = createKeyAuthentication(node.keyCache)
    expect(await keys.byKey(created.secret)).to.deep.equal({
      customerId,
      role: 'owner',
      keyId: created.keyId,
      via: 'key',
    })
    const [listed] = await node.apiKeys.list(owner)
    expect(listed).to.deep.equal({
      keyId: created.keyId,
      customerId,
      name: 'deploy',
      keyPrefix: created.keyPrefix,
      role: 'owner',
      createdAt: created.createdAt,
      revokedAt: null,
      lastUsedAt: null,
    })
  })

  it('names the field of bad input', async () => {
    const { owner } = await account()
    const bad = [
      [{ name: undefined }, /^name is required/],
      [{ name: '' }, /^name /],
      [{ name: 'x'.repeat(101) }, /^name /],
      [{ name: 'x', role: 'root' }, /^role must be one of: viewer, member, admin, owner/],
      [{ name: 'x', projectIds: 'p' }, /^projectIds /],
      [{ name: 'x', projectIds: [] }, /^projectIds /],
      [{ name: 'x', projectIds: [7] }, /^projectIds /],
      [{ name: 'x', projectIds: ['no-such'] }, /^projectIds /],
      [{ name: 'x', projectIds: ['nul\u0000'] }, /^projectIds /],
    ] as const
    for (const [input, text] of bad) {
      const { status, error } = await refusal(node.apiKeys.create(owner, input))
      expect(status, JSON.stringify(input)).to.equal(400)
      expect(error).to.match(text)
    }
    expect(await node.apiKeys.list(owner)).to.deep.equal([])
    expect((await node.apiKeys.create(owner, { name: '😀'.repeat(100) })).name).to.have.length(200)
  })

  it('gives at most the role of the caller, by default exactly that', async () => {
    const order: Role[] = ['viewer', 'member', 'admin', 'owner']
    for (const [rank, callerRole] of order.entries()) {
      const { customerId } = await account()
      const caller = principal(customerId, { role: callerRole })
      expect((await node.apiKeys.create(caller, { name: 'default' })).role).to.equal(callerRole)
      for (const [wanted, role] of order.entries()) {
        const attempt = node.apiKeys.create(caller, { name: role, role })
        if (wanted <= rank) expect((await attempt).role).to.equal(role)
        else expect((await refusal(attempt)).status).to.equal(403)
      }
    }
  })

  it('gives at most the projects of the caller, by default exactly those', async () => {
    const { customerId, owner, projects } = await account()
    const [p, q] = projects
    const scoped = principal(customerId, { projectIds: [p] })
    expect((await node.apiKeys.create(scoped, { name: 'same' })).projectIds).to.deep.equal([p])
    expect((await refusal(node.apiKeys.create(scoped, { name: 'x', projectIds: [q] }))).status).to.equal(403)
    expect((await refusal(node.apiKeys.create(scoped, { name: 'x', projectIds: [p, q] }))).status).to.equal(
      403,
    )
    const both = await node.apiKeys.create(owner, { name: 'both', projectIds: [q, p, q] })
    expect(both.projectIds).to.deep.equal([q, p])
    const foreign = await account()
    const stolen = node.apiKeys.create(owner, { name: 'x', projectIds: [foreign.projects[0]] })
    expect((await refusal(stolen)).status).to.equal(400)
  })

  it('shows a project-scoped caller only the keys that reach no further', async () => {
    const { customerId, owner, projects } = await account()
    const [p, q] = projects
    const wide = await node.apiKeys.create(owner, { name: 'all' })
    await node.apiKeys.create(owner, { name: 'p', projectIds: [p] })
    await node.apiKeys.create(owner, { name: 'p and q', projectIds: [p, q] })
    const scoped = principal(customerId, { projectIds: [p] })
    expect((await node.apiKeys.list(scoped)).map(({ name }) => name)).to.deep.equal(['p'])
    expect((await node.apiKeys.list(owner)).map(({ name }) => name)).to.deep.equal(['p and q', 'p', 'all'])
    expect((await refusal(node.apiKeys.revoke(scoped, wide.keyId))).status).to.equal(404)
  })

  it('allows ten active keys, however many are asked for at once', async () => {
    const { owner } = await account()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 25 }, (_, n) => node.apiKeys.create(owner, { name: `key ${n}` })),
    )
    const refused = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
    expect(outcomes.length - refused.length).to.equal(10)
    expect(new Set(refused.map(({ reason }) => reason.status))).to.deep.equal(new Set([409]))
    const [first] = await node.apiKeys.list(owner)
    await node.apiKeys.revoke(owner, first!.keyId)
    await node.apiKeys.create(owner, { name: 'in its place' })
    expect((await refusal(node.apiKeys.create(owner, { name: 'one more' }))).status).to.equal(409)
  })

  it('stops working the moment it is revoked, and cannot be revoked twice', async () => {
    const { owner } = await account()
    const { keyId, secret } = await node.apiKeys.create(owner, { name: 'short' })
    const keys = createKeyAuthentication(node.keyCache)
    await keys.byKey(secret)
    await node.apiKeys.revoke(owner, keyId)
    expect(await refusal(keys.byKey(secret))).to.deep.equal({
      status: 401,
      error: 'Invalid or revoked API key',
    })
    const [listed] = await node.apiKeys.list(owner)
    expect(Date.parse(listed?.revokedAt ?? '')).to.be.closeTo(Date.now(), 60_000)
    expect((await refusal(node.apiKeys.revoke(owner, keyId))).status).to.equal(409)
    expect((await refusal(node.apiKeys.revoke(owner, 'no-such'))).status).to.equal(404)
    const stranger = await account()
    expect((await refusal(node.apiKeys.revoke(stranger.owner, keyId))).status).to.equal(404)
  })

  it('is revoked only by a caller of its role or a higher one', async () => {
    const { customerId, owner } = await account()
    const keys = await Promise.all(
      (['owner', 'admin'] as const).map((role) => node.apiKeys.create(owner, { name: role, role })),
    )
    const admin = principal(customerId, { role: 'admin' })
    expect(await refusal(node.apiKeys.revoke(admin, keys[0]!.keyId))).to.deep.equal({
      status: 403,
      error: 'API key has a higher role than your own',
    })
    await node.apiKeys.revoke(admin, keys[1]!.keyId)
    await node.apiKeys.revoke(owner, keys[0]!.keyId)
    expect((await refusal(node.apiKeys.revoke(admin, keys[0]!.keyId))).status).to.equal(403)
    expect((await refusal(node.apiKeys.revoke(admin, keys[1]!.keyId))).status).to.equal(409)
  })

  it('leaves no key behind that it creates while it is revoked', async () => {
    const { owner, customerId } = await account()
    const { keyId } = await node.apiKeys.create(owner, { name: 'stolen' })
    await node.apiKeys.revoke(owner, keyId)
    const thief = principal(customerId, { keyId })
    expect(await refusal(node.apiKeys.create(thief, { name: 'back door' }))).to.deep.equal({
      status: 401,
      error: 'Invalid or revoked API key',
    })
    expect((await node.apiKeys.list(owner)).map(({ name }) => name)).to.deep.equal(['stolen'])
  })

  it('is revoked with all others of its customer, and with none of another', async () => {
    const [one, other] = [await account(), await account()]
    const mine = [
      await node.apiKeys.create(one.owner, { name: 'a' }),
      await node.apiKeys.create(one.owner, { name: 'b' }),
    ]
    const theirs = await node.apiKeys.create(other.owner, { name: 'c' })
    await node.apiKeys.revoke(one.owner, mine[1]!.keyId)
    expect(await node.apiKeys.revokeAll(one.customerId)).to.deep.equal([mine[0]!.keyId])
    expect(await node.apiKeys.revokeAll(one.customerId)).to.deep.equal([])
    const keys = createKeyAuthentication(node.keyCache)
    for (const { secret } of mine) expect((await refusal(keys.byKey(secret))).status).to.equal(401)
    expect(await keys.byKey(theirs.secret)).to.include({ customerId: other.customerId })
    expect((await refusal(node.apiKeys.revokeAll('nobody'))).status).to.equal(404)
    expect((await refusal(node.apiKeys.revokeAll('no/slash'))).status).to.equal(400)
  })

  describe('that were revoked', () => {
    /** So many of a customer, the first one the longest ago, in one piece and with their entries of the change feed. */
    async function revokedBefore(customerId: string, count: number): Promise<void> {
      await node.db`
        INSERT INTO api_keys (key_id, customer_id, name, hash, key_prefix, role)
        SELECT ${customerId} || '-old-' || n, ${customerId}, 'old', sha256((${customerId} || n)::bytea), 'svk_0000', 'owner'
        FROM generate_series(1, ${count}::int) n`
      await node.db`
        UPDATE api_keys SET revoked_at = now() - interval '1 day' + split_part(key_id, '-old-', 2)::int * interval '1 second'
        WHERE customer_id = ${customerId} AND name = 'old'`
    }
    const stored = async (customerId: string) => {
      const rows = await node.db<{ id: string }[]>`
        SELECT key_id AS id FROM api_keys WHERE customer_id = ${customerId} AND revoked_at IS NOT NULL`
      return rows.map(({ id }) => id).sort()
    }
    const inFeed = async (customerId: string) => {
      const rows = await node.db<{ id: string }[]>`
        SELECT id FROM config_changes WHERE entity = 'api_key' AND id LIKE ${`${customerId}-old-%`}`
      return rows.map(({ id }) => id).sort()
    }
    const old = (customerId: string, from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, n) => `${customerId}-old-${from + n}`).sort()

    it('stay up to a hundred, without their entries of the change feed beyond that', async () => {
      const { customerId, owner } = await account()
      await revokedBefore(customerId, 102)
      const { keyId } = await node.apiKeys.create(owner, { name: 'new' })
      expect(await stored(customerId), 'after a creation').to.deep.equal(old(customerId, 3, 102))
      await node.apiKeys.revoke(owner, keyId)
      expect(await stored(customerId), 'after a revocation').to.deep.equal(
        [keyId, ...old(customerId, 4, 102)].sort(),
      )
      expect(await inFeed(customerId)).to.deep.equal(old(customerId, 4, 102))
      const listed = (await node.apiKeys.list(owner)).map((each) => each.keyId)
      expect(listed.sort()).to.deep.equal(await stored(customerId))
      expect(await refusal(node.apiKeys.revoke(owner, `${customerId}-old-1`))).to.include({ status: 404 })
    })

    it('are counted right however many are revoked at once, and those of others are left alone', async () => {
      const [one, other] = [await account(), await account()]
      for (const { customerId } of [one, other]) await revokedBefore(customerId, 100)
      const keys = await Promise.all(
        Array.from({ length: 10 }, (_, n) => node.apiKeys.create(one.owner, { name: `key ${n}` })),
      )
      await Promise.all(keys.map(({ keyId }) => node.apiKeys.revoke(one.owner, keyId)))
      expect(await stored(one.customerId)).to.deep.equal(
        [...keys.map(({ keyId }) => keyId), ...old(one.customerId, 11, 100)].sort(),
      )
      expect(await stored(other.customerId)).to.deep.equal(old(other.customerId, 1, 100))
    })

    it('are listed up to a hundred while more are left of earlier versions, which go piece by piece', async () => {
      const { customerId, owner } = await account()
      await revokedBefore(customerId, 1_200)
      const { keyId } = await node.apiKeys.create(owner, { name: 'active' })
      const listed = async () => (await node.apiKeys.list(owner)).map((each) => each.keyId).sort()
      expect(await listed()).to.deep.equal([keyId, ...old(customerId, 1_101, 1_200)].sort())
      const left = [(await stored(customerId)).length]
      while (left.at(-1)! > 100) {
        await node.apiKeys.revoke(owner, (await node.apiKeys.create(owner, { name: 'one more' })).keyId)
        left.push((await stored(customerId)).length)
        expect(left.at(-1)).to.be.lessThan(left.at(-2)!)
      }
      expect(left[0], 'no more than a piece went at once').to.be.greaterThan(100)
      expect(await listed()).to.have.length(101)
    })

    it('lose their last use without a fault when they are gone, beside one that is there', async () => {
      const { customerId, owner } = await account()
      const { keyId } = await node.apiKeys.create(owner, { name: 'used' })
      await revokedBefore(customerId, 1)
      const at = Date.now()
      await node.db`DELETE FROM api_keys WHERE key_id = ${`${customerId}-old-1`}`
      await createApiKeyRows(node.db).markUsed(
        new Map([
          [`${customerId}-old-1`, at],
          [keyId, at],
        ]),
      )
      expect((await node.apiKeys.list(owner))[0]).to.include({
        keyId,
        lastUsedAt: new Date(at).toISOString(),
      })
    })

    it('stay revoked when the configuration names them, however many are revoked later', async () => {
      const { customerId, owner } = await account()
      const secret = `svk_${randomBytes(24).toString('hex')}`
      await node.apiKeys.ensureOwnerKey(customerId, secret)
      const [configured] = await node.apiKeys.list(owner)
      await node.apiKeys.revoke(owner, configured!.keyId)
      await node.db`UPDATE api_keys SET revoked_at = now() - interval '2 days' WHERE key_id = ${configured!.keyId}`
      await revokedBefore(customerId, 105)
      const { keyId } = await node.apiKeys.create(owner, { name: 'x' })
      await node.apiKeys.revoke(owner, keyId)
      expect(await stored(customerId)).to.have.length(101)
      expect(await node.apiKeys.ensureOwnerKey(customerId, secret)).to.equal('revoked')
      expect(await node.keyCache.authenticate(secret)).to.equal(undefined)
    })

    it('stay revoked also when only an earlier version has stored them', async () => {
      const { customerId, owner } = await account()
      const secret = `svk_${randomBytes(24).toString('hex')}`
      await node.apiKeys.ensureOwnerKey(customerId, secret)
      const [configured] = await node.apiKeys.list(owner)
      await node.apiKeys.revoke(owner, configured!.keyId)
      await node.db`DELETE FROM configured_keys WHERE key_id = ${configured!.keyId}`
      await node.db`UPDATE api_keys SET revoked_at = now() - interval '2 days' WHERE key_id = ${configured!.keyId}`
      expect(await node.apiKeys.ensureOwnerKey(customerId, secret), 'the first start').to.equal('revoked')
      await revokedBefore(customerId, 100)
      await node.apiKeys.create(owner, { name: 'x' })
      expect(await node.apiKeys.ensureOwnerKey(customerId, secret), 'the next start').to.equal('revoked')
    })
  })

  describe('of the installation', () => {
    const random = () => `svk_${randomBytes(24).toString('hex')}`

    it('are ensured with their customer, by any number of starting nodes', async () => {
      const secret = random()
      const starts = Array.from({ length: 5 }, () => node.apiKeys.ensureOwnerKey('operated', secret))
      expect(await Promise.all(starts)).to.deep.equal(Array(5).fill('active'))
      const owner = await createKeyAuthentication(node.keyCache).byKey(secret)
      expect(owner).to.include({ customerId: 'operated', role: 'owner' })
      expect(await node.apiKeys.list(owner)).to.have.length(1)
      expect(await node.customers.read(owner, 'operated')).to.include({ name: 'operated' })
    })

    it('stay revoked, and belong to one customer', async () => {
      const secret = random()
      await node.apiKeys.ensureOwnerKey('operated-2', secret)
      const owner = await createKeyAuthentication(node.keyCache).byKey(secret)
      await node.apiKeys.revoke(owner, owner.keyId!)
      expect(await node.apiKeys.ensureOwnerKey('operated-2', secret)).to.equal('revoked')
      const stolen = await node.apiKeys.ensureOwnerKey('operated-3', secret).catch((error) => error)
      expect(stolen.message).to.contain('belongs to another customer').and.not.to.contain(secret)
      const malformed = await node.apiKeys.ensureOwnerKey('operated-3', 'svk_abc').catch((error) => error)
      expect(malformed.message).to.contain('operated-3')
    })

    it('can be made beyond the limit', async () => {
      const { customerId, owner } = await account()
      for (let n = 0; n < 10; n++) await node.apiKeys.create(owner, { name: 'x' })
      const { secret } = await node.apiKeys.createOwnerKey(customerId)
      expect(await createKeyAuthentication(node.keyCache).byKey(secret)).to.include({
        customerId,
        role: 'owner',
      })
    })
  })

  it('leaves no secret in the database', async () => {
    const { owner } = await account()
    const { secret } = await node.apiKeys.create(owner, { name: 'hashed' })
    const rows = await node.db`SELECT api_keys::text AS row FROM api_keys`
    const text = rows.map(({ row }) => row).join('\n')
    expect(text)
      .not.to.contain(secret.slice(8))
      .and.not.to.contain(Buffer.from(secret.slice(8)).toString('hex'))
    expect(text).to.contain(secret.slice(0, 8))
  })
})
