import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createSignUps } from '../../internal/accounts/sign-ups.ts'
import { createSuspensions } from '../../internal/accounts/suspensions.ts'
import { createTokenAuthentication } from '../../internal/auth/authentication.ts'
import { createIdentityCache } from '../../internal/auth/identity-cache.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import type { Identity } from '../../internal/domain/identity.ts'
import { createConfigFeed } from '../../internal/postgres/config-feed.ts'
import { createIdentityRows, createSignUpStore } from '../../internal/postgres/identities.ts'
import { createSuspensionStore } from '../../internal/postgres/suspensions.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import { TokenBuckets } from '../../internal/runtime/token-buckets.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { type AccountsNode, accountsNode, INITIAL_CREDITS, refusal } from '../support/accounts.ts'
import { eventually } from '../support/eventually.ts'
import { UNLIMITED } from '../support/limits.ts'

/** Longer than any test: what arrives did not come by a poll. */
const NEVER_MS = 3_600_000

describe('authentication by ID token', () => {
  const nodes: AccountsNode[] = []
  let node: AccountsNode
  let doorman: ReturnType<typeof doormanOf>

  beforeEach(async () => {
    created.length = 0
    node = await opened()
    doorman = doormanOf(node)
  })
  afterEach(() => Promise.all(nodes.splice(0).map((each) => each.close())))

  async function opened(url?: string): Promise<AccountsNode> {
    const opened = await accountsNode(url)
    nodes.push(opened)
    return opened
  }

  const customers = async () => await node.db`SELECT customer_id, name, created_by FROM customers`

  it('makes the bearer of the first token the owner of a new customer, with its first credits', async () => {
    const principal = await doorman.byToken('ada')
    expect(principal).to.deep.equal({
      customerId: principal.customerId,
      role: 'owner',
      via: 'token',
      identity: { issuer: 'https://id.example', subject: 'ada' },
    })
    expect(principal.customerId).to.match(/^cus_[0-9a-f]{24}$/)
    expect([...(await customers())]).to.deep.equal([
      { customer_id: principal.customerId, name: 'Person ada', created_by: null },
    ])
    const customer = await node.customers.read(principal, principal.customerId)
    expect(customer).to.include({ credits: INITIAL_CREDITS, creditLimit: INITIAL_CREDITS, enabled: true })
    const grants = await node.db`SELECT amount, type FROM credit_transactions`
    expect([...grants]).to.deep.equal([{ amount: INITIAL_CREDITS, type: 'grant' }])
  })

  it('knows the account again, on every node', async () => {
    const first = await doorman.byToken('ada')
    expect(await doorman.byToken('ada')).to.deep.equal(first)
    const other = doormanOf(await opened(node.url))
    expect(await other.byToken('ada')).to.deep.equal(first)
    expect(await customers()).to.have.length(1)
  })

  it('tells accounts apart by subject and by issuer', async () => {
    const otherDoorman = doormanOf(node, { issuer: 'https://other.example' })
    const ids = await Promise.all([
      doorman.byToken('ada'),
      doorman.byToken('bob'),
      otherDoorman.byToken('ada'),
    ])
    expect(new Set(ids.map(({ customerId }) => customerId)).size).to.equal(3)
  })

  it('names the customer as its id when the token has no name', async () => {
    const { customerId } = await doormanOf(node, { name: undefined }).byToken('ada')
    expect((await customers())[0]).to.include({ customer_id: customerId, name: customerId })
  })

  it('creates exactly one customer of however many first requests, over all nodes', async () => {
    const other = doormanOf(await opened(node.url))
    const found = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? doorman : other).byToken('ada')),
    )
    expect(new Set(found.map(({ customerId }) => customerId)).size).to.equal(1)
    expect(await customers()).to.have.length(1)
    expect(created, 'told once').to.deep.equal([`ada ${found[0]!.customerId}`])
    expect([...(await node.db`SELECT amount FROM credit_transactions`)]).to.have.length(1)
    expect([...(await node.db`SELECT FROM identities`)]).to.have.length(1)
  })

  it('creates nothing for a guest, and knows one that has a customer already', async () => {
    const guests = doormanOf(node, { anonymous: true })
    const error = await guests.byToken('ada').catch((reason) => reason)
    expect([error.status, error.body]).to.deep.equal([403, { error: 'Anonymous accounts cannot sign up' }])
    expect(await customers()).to.deep.equal([])
    const known = await doorman.byToken('ada')
    expect(await guests.byToken('ada')).to.deep.equal(known)
  })

  it('refuses an unverified e-mail address with its code, and creates nothing', async () => {
    const unverified = doormanOf(node, { password: true, emailVerified: false })
    const error = await unverified.byToken('ada').catch((reason) => reason)
    expect(error).to.be.instanceOf(ServiceError)
    expect([error.status, error.body]).to.deep.equal([
      403,
      { error: 'E-mail address is not verified', code: 'email_not_verified' },
    ])
    expect([...(await customers()), ...(await node.db`SELECT FROM identities`)]).to.deep.equal([])
    const verified = doormanOf(node, { password: true, emailVerified: true })
    expect(await verified.byToken('ada')).to.include({ role: 'owner' })
    expect(await refusal(unverified.byToken('ada')), 'also of a known account').to.include({ status: 403 })
  })

  it('takes no token where no identity provider is configured', async () => {
    const { identities, signUp } = partsOf(node)
    const closed = createTokenAuthentication({ verifier: undefined, identities, signUp })
    expect(await refusal(closed.byToken('ada'))).to.deep.equal({
      status: 401,
      error: 'Invalid or expired ID token',
    })
  })

  it('signs up no more new accounts than may come, and goes on for those that are there', async () => {
    const clock = new ManualClock()
    let limited = 0
    const limits = {
      buckets: new TokenBuckets({ clock, perSecond: 1 / 60, burst: 1 }),
      onLimited: () => void limited++,
    }
    const { identities, signUp, verifier } = partsOf(node, {}, limits)
    const { byToken } = createTokenAuthentication({ verifier, identities, signUp })
    const first = await byToken('grace')
    const refused = await byToken('hopper').catch((reason) => reason)
    expect(refused.body).to.deep.equal({
      error: 'Too many new accounts, try again later',
      code: 'rate_limited',
    })
    expect([refused.status, refused.retryAfter, limited]).to.deep.equal([429, 60, 1])
    expect((await byToken('grace')).customerId).to.equal(first.customerId)
    clock.advance(60_000)
    expect((await byToken('hopper')).customerId).not.to.equal(first.customerId)
  })

  it('leaves nothing of a sign-up that fails half-way', async () => {
    await node.db`INSERT INTO customers (customer_id, name) VALUES (${`cus_${'07'.repeat(12)}`}, 'taken')`
    const { identities, verifier } = partsOf(node)
    const { signUp } = createSignUps({
      signUps: createSignUpStore(node.db),
      randomness: { bytes: (size) => new Uint8Array(size).fill(7), fraction: () => 0 },
      initialCredits: INITIAL_CREDITS,
      ...UNLIMITED,
      onCreated: () => expect.fail('nobody was created'),
    })
    const unlucky = createTokenAuthentication({ verifier, identities, signUp })
    const error = await unlucky.byToken('ada').catch((reason) => reason)
    expect(String(error)).to.include('is taken')
    expect([...(await node.db`SELECT FROM identities`)]).to.deep.equal([])
    expect([...(await node.db`SELECT FROM credit_transactions`)]).to.deep.equal([])
  })

  describe('with what a node remembers of accounts', () => {
    it('asks the database once for a known account', async () => {
      const { identities, asked } = counted(node)
      await doorman.byToken('ada')
      const ada = { issuer: ISSUER, subject: 'ada' }
      const first = await identities.customerOf(ada)
      expect(await identities.customerOf(ada)).to.deep.equal(first)
      expect(asked()).to.equal(1)
    })

    it('asks anew after the given age', async () => {
      const { identities, asked } = counted(node, { maxAgeMs: 0 })
      await doorman.byToken('ada')
      await identities.customerOf({ issuer: ISSUER, subject: 'ada' })
      await identities.customerOf({ issuer: ISSUER, subject: 'ada' })
      expect(asked()).to.equal(2)
    })

    it('keeps no more than the given number', async () => {
      const { identities, asked } = counted(node, { maxEntries: 2 })
      for (const subject of ['a', 'b', 'c']) {
        await doorman.byToken(subject)
        await identities.customerOf({ issuer: ISSUER, subject })
      }
      for (const subject of ['b', 'c']) await identities.customerOf({ issuer: ISSUER, subject })
      expect(asked()).to.equal(3)
      await identities.customerOf({ issuer: ISSUER, subject: 'a' })
      expect(asked()).to.equal(4)
    })

    it('forgets it with the row, wherever it is deleted: the account signs up anew', async () => {
      const { identities, signUp, verifier } = partsOf(node)
      const remembering = createTokenAuthentication({ verifier, identities, signUp })
      const feed = createConfigFeed({
        db: node.db,
        clock: node.clock,
        pollMs: NEVER_MS,
        listeners: [{ entity: 'identity', ...identities }],
        onError: (error) => expect.fail(String(error)),
      })
      await feed.start()
      const before = await remembering.byToken('ada')
      const bob = await remembering.byToken('bob')
      await remembering.byToken('ada')
      const other = await opened(node.url)
      await other.db`DELETE FROM identities WHERE subject = 'ada'`
      const again = await eventually(async () => {
        const principal = await remembering.byToken('ada')
        return principal.customerId !== before.customerId && principal
      })
      await other.db`DELETE FROM credit_transactions WHERE customer_id = ${again.customerId}`
      await other.db`DELETE FROM customers WHERE customer_id = ${again.customerId}`
      await eventually(async () => (await remembering.byToken('ada')).customerId !== again.customerId)
      expect(await remembering.byToken('bob')).to.deep.equal(bob)
      await feed.stop()
    })

    it('hears at once that a customer is suspended, and makes no new one of its account', async () => {
      const { identities, signUp, verifier } = partsOf(node)
      const remembering = createTokenAuthentication({ verifier, identities, signUp })
      const feed = createConfigFeed({
        db: node.db,
        clock: node.clock,
        pollMs: NEVER_MS,
        listeners: [{ entity: 'customer', changed: identities.changed, reset: () => {} }],
        onError: (error) => expect.fail(String(error)),
      })
      await feed.start()
      const before = await remembering.byToken('ada')
      const bob = await remembering.byToken('bob')
      await remembering.byToken('ada')
      const suspensions = createSuspensions(createSuspensionStore(node.db))
      await suspensions.set(before.customerId, true)
      const again = await eventually(async () => {
        const principal = await remembering.byToken('ada')
        return principal.suspended && principal
      })
      expect(again).to.deep.equal({ ...before, suspended: true })
      expect(await doorman.byToken('ada')).to.deep.equal(again)
      expect(await remembering.byToken('bob')).to.deep.equal(bob)
      expect(await customers()).to.have.length(2)
      await suspensions.set(before.customerId, false)
      await eventually(async () => (await remembering.byToken('ada')).suspended === undefined)
      await feed.stop()
    })
  })
})

const ISSUER = 'https://id.example'

/** A token is a subject here: what a token must be is the identity provider's adapter's to say. */
function verifierOf(more: Partial<Identity>) {
  return {
    verify: async (subject: string): Promise<Identity> => ({
      issuer: ISSUER,
      subject,
      name: `Person ${subject}`,
      password: false,
      anonymous: false,
      emailVerified: false,
      ...more,
    }),
  }
}

/** Customers that were told to be new, as subject and id. */
const created: string[] = []

function partsOf(node: AccountsNode, more: Partial<Identity> = {}, limited = UNLIMITED) {
  const { db, clock } = node
  const { signUp } = createSignUps({
    signUps: createSignUpStore(db),
    randomness: systemRandomness(),
    initialCredits: INITIAL_CREDITS,
    ...limited,
    onCreated: ({ subject }, customerId) => created.push(`${subject} ${customerId}`),
  })
  return {
    verifier: verifierOf(more),
    identities: createIdentityCache({ rows: createIdentityRows(db), clock }),
    signUp,
  }
}

function doormanOf(node: AccountsNode, more: Partial<Identity> = {}) {
  return createTokenAuthentication(partsOf(node, more))
}

/** A cache with the number of statements that it made. */
function counted(node: AccountsNode, options: { maxEntries?: number; maxAgeMs?: number } = {}) {
  const rows = createIdentityRows(node.db)
  let asked = 0
  const identities = createIdentityCache({
    rows: {
      customersOf(accounts) {
        asked++
        return rows.customersOf(accounts)
      },
    },
    clock: node.clock,
    ...options,
  })
  return { identities, asked: () => asked }
}
