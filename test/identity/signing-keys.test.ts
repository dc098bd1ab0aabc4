import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { refusal } from '../support/accounts.ts'
import { type IdentityProvider, newKey, startIdentityProvider } from '../support/identity-provider.ts'
import { verifierOf } from './verifier.ts'

const INVALID = { status: 401, error: 'Invalid or expired ID token' }
const AWAY = { status: 503, error: 'Identity provider cannot be reached, try again or use an API key' }
/** Longer than any test. */
const NEVER_MS = 3_600_000

describe("the provider's keys", () => {
  let provider: IdentityProvider
  beforeEach(async () => {
    provider = await startIdentityProvider()
  })
  afterEach(() => provider.stop())

  /** The same provider, as its users see it, with other keys. */
  async function restarted(keys = provider.keys): Promise<void> {
    const { port } = provider
    await provider.stop()
    provider = await startIdentityProvider({ port, keys })
  }

  it('are asked for when the first token comes, and not for each', async () => {
    const { verify } = verifierOf(provider)
    expect([provider.discoveryRequests, provider.keyRequests]).to.deep.equal([0, 0])
    const tokens = await Promise.all(Array.from({ length: 5 }, () => provider.token()))
    await Promise.all(tokens.map(verify))
    for (const token of tokens) await verify(token)
    expect([provider.discoveryRequests, provider.keyRequests]).to.deep.equal([1, 1])
  })

  it('are asked for again when a token names another one: the new are good, the old no longer', async () => {
    const { verify } = verifierOf(provider, { cooldownMs: 0 })
    const old = await provider.token()
    await verify(old)
    await restarted([await newKey('RS256')])
    expect(await verify(old), 'nobody knows yet').to.have.property('subject')
    expect(await verify(await provider.token())).to.have.property('subject')
    expect(await refusal(verify(old))).to.deep.equal(INVALID)
  })

  it('are good beside each other while the provider publishes both', async () => {
    const { verify } = verifierOf(provider, { cooldownMs: 0 })
    const old = await provider.token()
    await restarted([await newKey('RS256'), ...provider.keys])
    expect(await verify(await provider.token())).to.have.property('subject')
    expect(await verify(old)).to.have.property('subject')
  })

  it('that the provider took back are forgotten with age, without any new token', async () => {
    const { verify } = verifierOf(provider, { cacheMs: 0 })
    const old = await provider.token()
    await verify(old)
    await restarted([await newKey('RS256')])
    expect(await refusal(verify(old))).to.deep.equal(INVALID)
  })

  it('are asked for once, however many tokens name keys that nobody has', async () => {
    const { verify } = verifierOf(provider, { cooldownMs: NEVER_MS })
    await verify(await provider.token())
    const flood = await Promise.all(
      Array.from({ length: 200 }, () => provider.forge({}, { kid: randomUUID() })),
    )
    for (const outcome of await Promise.all(flood.map((token) => refusal(verify(token))))) {
      expect(outcome).to.deep.equal(INVALID)
    }
    for (const token of flood.slice(0, 20)) await refusal(verify(token))
    expect([provider.discoveryRequests, provider.keyRequests]).to.deep.equal([1, 1])
  })

  it('need no provider while they are known', async () => {
    const { verify, problems } = verifierOf(provider)
    const [first, second] = [await provider.token({ sub: 'ada' }), await provider.token({ sub: 'bob' })]
    await verify(first)
    await provider.stop()
    expect(await verify(second)).to.include({ subject: 'bob' })
    expect(problems).to.deep.equal([])
    await restarted()
  })

  describe('of a provider that is away', () => {
    it('are 503 once they are too old', async () => {
      const { verify } = verifierOf(provider, { cacheMs: 0 })
      const token = await provider.token()
      await verify(token)
      provider.breakDown(503)
      expect(await refusal(verify(token))).to.deep.equal(AWAY)
    })

    it('are 503 until it is back, asked for once a cooldown', async () => {
      const token = await provider.token({ sub: 'ada' })
      const { port, keys } = provider
      await provider.stop()
      const { verify, problems, clock } = verifierOf(provider, { cooldownMs: NEVER_MS })
      for (const outcome of await Promise.all([1, 2, 3].map(() => refusal(verify(token))))) {
        expect(outcome).to.deep.equal(AWAY)
      }
      expect(await refusal(verify(token))).to.deep.equal(AWAY)
      expect(problems.map(({ message }) => message)).to.have.length(1)
      expect(problems[0]!.message)
        .to.include(provider.issuer)
        .and.match(/ECONNREFUSED/)
      provider = await startIdentityProvider({ port, keys })
      expect(await refusal(verify(token)), 'it was not asked again yet').to.deep.equal(AWAY)
      expect(provider.discoveryRequests).to.equal(0)
      clock.move(NEVER_MS)
      expect(await verify(token)).to.include({ subject: 'ada' })
    })

    it('are 503 for what names an unknown one, and go on for what names a known one', async () => {
      const { verify, problems } = verifierOf(provider, { cooldownMs: 0 })
      const token = await provider.token({ sub: 'ada' })
      await verify(token)
      provider.breakDown(500)
      const unknown = await provider.forge({}, { kid: 'unknown' })
      expect(await refusal(verify(unknown))).to.deep.equal(AWAY)
      expect(await verify(token)).to.include({ subject: 'ada' })
      expect(problems[0]!.message).to.match(/answered 500/)
      provider.recover()
      expect(await refusal(verify(unknown))).to.deep.equal(INVALID)
    })

    it('are not asked for by what is no token of a good algorithm', async () => {
      await provider.stop()
      const { verify, problems } = verifierOf(provider)
      expect(await refusal(verify('garbage'))).to.deep.equal(INVALID)
      expect(await refusal(verify('e30.e30.AAAA'))).to.deep.equal(INVALID)
      expect(problems).to.deep.equal([])
      await restarted()
    })
  })

  describe('are 503 of a provider that answers nonsense:', () => {
    async function problemWith(more: Parameters<typeof verifierOf>[1]): Promise<string> {
      const { verify, problems } = verifierOf(provider, more)
      expect(await refusal(verify(await provider.token()))).to.deep.equal(AWAY)
      expect(problems).to.have.length(1)
      return problems[0]!.message
    }

    it('another issuer than the configured one', async () => {
      const issuer = provider.issuer.replace('127.0.0.1', 'localhost')
      expect(await problemWith({ issuer })).to.include(`speaks of the issuer "${provider.issuer}"`)
      expect(await problemWith({ issuer: `${provider.issuer}/` })).to.include('speaks of the issuer')
    })

    it('plain http outside the local instance', async () => {
      expect(await problemWith({ plainHttp: false })).to.include('names no usable jwks_uri')
    })

    it('a status of its own', async () => {
      const jwksUrl = `${provider.issuer}/nowhere`
      expect(await problemWith({ jwksUrl })).to.include('answered 404')
    })

    it('a redirect, which is not followed', async () => {
      const token = await provider.token()
      const target = await startIdentityProvider({ keys: provider.keys })
      const { verify, problems } = verifierOf(provider, { jwksUrl: provider.jwksUrl })
      provider.breakDown(302, { location: target.jwksUrl })
      expect(await refusal(verify(token))).to.deep.equal(AWAY)
      expect(problems[0]!.message).to.include('answered 302')
      expect(target.keyRequests).to.equal(0)
      await target.stop()
    })

    it('more than any provider has to say', async () => {
      const token = await provider.token()
      const { verify, problems } = verifierOf(provider, { jwksUrl: provider.jwksUrl })
      provider.breakDown(200, {}, JSON.stringify({ keys: [], padding: 'x'.repeat(1_000_000) }))
      expect(await refusal(verify(token))).to.deep.equal(AWAY)
      expect(problems[0]!.message).to.include('answered more than 1000000 bytes')
    })

    it('an object without keys', async () => {
      const jwksUrl = `${provider.issuer}/.well-known/openid-configuration`
      expect(await problemWith({ jwksUrl })).to.include('is no JSON Web Key Set')
    })
  })
})
