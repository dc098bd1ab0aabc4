import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { exportSPKI, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { after, before, describe, it } from 'mocha'
import type { TokenVerifier } from '../../internal/auth/ports.ts'
import { refusal } from '../support/accounts.ts'
import {
  CLIENT,
  type IdentityProvider,
  newKey,
  OTHER_CLIENT,
  startIdentityProvider,
} from '../support/identity-provider.ts'
import { movableClock, verifierOf } from './verifier.ts'

const INVALID = { status: 401, error: 'Invalid or expired ID token' }
const HOUR_S = 3_600

describe('ID tokens of a real provider', () => {
  let provider: IdentityProvider
  let verify: TokenVerifier['verify']
  before(async () => {
    provider = await startIdentityProvider()
    verify = verifierOf(provider).verify
  })
  after(() => provider.stop())

  it('name who signed in, by issuer and subject', async () => {
    const ada = { sub: 'ada', name: 'Ada', email: 'ada@example.com', email_verified: true, amr: ['pwd'] }
    expect(await verify(await provider.token(ada))).to.deep.equal({
      issuer: provider.issuer,
      subject: 'ada',
      name: 'Ada',
      password: true,
      anonymous: false,
      emailVerified: true,
    })
    const bob = { sub: 'bob', email: 'bob@example.com', firebase: { sign_in_provider: 'google.com' } }
    expect(await verify(await provider.token(bob))).to.deep.equal({
      issuer: provider.issuer,
      subject: 'bob',
      name: 'bob@example.com',
      password: false,
      anonymous: false,
      emailVerified: false,
    })
    const guest = { sub: 'guest', firebase: { sign_in_provider: 'anonymous' } }
    expect(await verify(await provider.token(guest))).to.include({ subject: 'guest', anonymous: true })
  })

  for (const algorithm of ['PS256', 'ES256', 'ES384', 'Ed25519'] as const) {
    it(`are good with ${algorithm} too`, async () => {
      const other = await startIdentityProvider({ keys: [await newKey(algorithm), await newKey('RS256')] })
      const token = await other.token({ sub: 'eve' })
      expect(headerOf(token).alg).to.equal(algorithm)
      expect(await verifierOf(other).verify(token)).to.include({ subject: 'eve' })
      await other.stop()
    })
  }

  it('are checked with the keys of a configured address without any discovery', async () => {
    const before = provider.discoveryRequests
    const direct = verifierOf(provider, { jwksUrl: provider.jwksUrl })
    expect(await direct.verify(await provider.token({ sub: 'ada' }))).to.include({ subject: 'ada' })
    expect(provider.discoveryRequests).to.equal(before)
  })

  it('of another client are refused', async () => {
    const token = await provider.token({}, OTHER_CLIENT)
    expect(await refusal(verify(token))).to.deep.equal(INVALID)
    const { verify: others } = verifierOf(provider, { audience: OTHER_CLIENT })
    expect(await others(token)).to.have.property('subject')
  })

  it('issued to another client are refused, though this one is among their audiences', async () => {
    for (const azp of [OTHER_CLIENT, '', 7, null]) {
      const token = await provider.forge({ azp, aud: [CLIENT, OTHER_CLIENT] })
      expect(await refusal(verify(token)), String(azp)).to.deep.equal(INVALID)
    }
    expect(await verify(await provider.forge({ azp: CLIENT }))).to.include({ subject: 'forged' })
  })

  it('of another provider are refused, also under the name of this one', async () => {
    const stranger = await startIdentityProvider()
    expect(await refusal(verify(await stranger.token()))).to.deep.equal(INVALID)
    const { kid } = provider.keys[0]!
    const posing = await stranger.forge({ iss: provider.issuer }, { kid })
    expect(await refusal(verify(posing))).to.deep.equal(INVALID)
    await stranger.stop()
  })

  it('end an hour after they were issued, give or take the tolerance', async () => {
    const clock = movableClock()
    const { verify: later } = verifierOf(provider, { clock })
    const token = await provider.token()
    clock.move((HOUR_S - 60) * 1_000)
    expect(await later(token)).to.have.property('subject')
    clock.move(70_000)
    expect(await refusal(later(token))).to.deep.equal(INVALID)
  })

  it('are refused when a character of any part is another', async () => {
    const token = await provider.token()
    const parts = token.split('.')
    for (const part of [0, 1, 2]) {
      const middle = Math.floor(parts[part]!.length / 2)
      const changed = parts.with(part, swapped(parts[part]!, middle)).join('.')
      expect(await refusal(verify(changed)), `part ${part}`).to.deep.equal(INVALID)
    }
  })

  it('with the claims of another signed token are refused', async () => {
    const [header, , signature] = (await provider.token({ sub: 'ada' })).split('.')
    const [, claims] = (await provider.token({ sub: 'bob' })).split('.')
    expect(await refusal(verify([header, claims, signature].join('.')))).to.deep.equal(INVALID)
  })

  describe('that no key of an asymmetric algorithm signed', () => {
    it('are refused with alg none, in any case', async () => {
      const claims = { iss: provider.issuer, aud: CLIENT, sub: 'mallory', exp: inSeconds(600) }
      const none = new UnsecuredJWT(claims).encode()
      const [, payload] = none.split('.')
      for (const alg of ['none', 'None', 'NONE', 'nOnE']) {
        const header = Buffer.from(JSON.stringify({ alg, typ: 'JWT' })).toString('base64url')
        for (const signature of ['', 'AAAA']) {
          expect(await refusal(verify(`${header}.${payload}.${signature}`)), alg).to.deep.equal(INVALID)
        }
      }
    })

    it('are refused with HS256 over the published key', async () => {
      const { publicKey, kid } = provider.keys[0]!
      const spki = await exportSPKI(publicKey)
      for (const alg of ['HS256', 'HS384', 'HS512']) {
        for (const secret of [spki, spki.trim(), spki.replaceAll(/-----[^-]+-----|\n/g, '')]) {
          const token = await new SignJWT({ amr: ['otp'] })
            .setProtectedHeader({ alg, kid })
            .setIssuer(provider.issuer)
            .setAudience(CLIENT)
            .setSubject('mallory')
            .setExpirationTime('10m')
            .sign(new TextEncoder().encode(secret))
          expect(await refusal(verify(token)), alg).to.deep.equal(INVALID)
        }
      }
    })

    it('are refused with a key that the token brings along', async () => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const token = await new SignJWT({ amr: ['otp'] })
        .setProtectedHeader({ alg: 'ES256', jwk: publicKey.export({ format: 'jwk' }) as never })
        .setIssuer(provider.issuer)
        .setAudience(CLIENT)
        .setSubject('mallory')
        .setExpirationTime('10m')
        .sign(privateKey)
      expect(await refusal(verify(token))).to.deep.equal(INVALID)
    })
  })

  describe('with claims that the provider would not make', () => {
    const bad: Record<string, () => JWTPayload> = {
      'another issuer': () => ({ iss: 'https://id.example' }),
      'the issuer with a slash more': () => ({ iss: `${provider.issuer}/` }),
      'no issuer': () => ({ iss: undefined }),
      'another audience': () => ({ aud: 'somebody-else' }),
      'our audience as a part of theirs': () => ({ aud: `${CLIENT}-2` }),
      'no audience': () => ({ aud: undefined }),
      'an empty list of audiences': () => ({ aud: [] }),
      'no subject': () => ({ sub: undefined }),
      'an empty subject': () => ({ sub: '' }),
      'a subject that is a number': () => ({ sub: 7 as never }),
      'a subject that is too long': () => ({ sub: 'x'.repeat(256) }),
      'a subject with NUL': () => ({ sub: 'a\0b' }),
      'no expiry': () => ({ exp: undefined }),
      'an expiry that is text': () => ({ exp: String(inSeconds(600)) as never }),
      'an expiry in the past': () => ({ exp: inSeconds(-30) }),
      'a beginning in the future': () => ({ nbf: inSeconds(60) }),
      'an issue in the future': () => ({ iat: inSeconds(60) }),
      'an issue longer ago than an hour': () => ({ iat: inSeconds(-HOUR_S - 60) }),
      'an issue that is text': () => ({ iat: 'now' as never }),
    }
    for (const [what, claims] of Object.entries(bad)) {
      it(`are refused: ${what}`, async () => {
        expect(await refusal(verify(await provider.forge(claims())))).to.deep.equal(INVALID)
      })
    }

    const good: Record<string, () => JWTPayload> = {
      'several audiences, ours among them': () => ({ aud: ['somebody-else', CLIENT] }),
      'a subject of 255 characters': () => ({ sub: 'x'.repeat(255) }),
      'clocks that are three seconds apart': () => ({ nbf: inSeconds(3), iat: inSeconds(3) }),
      'no time of issue': () => ({ iat: undefined }),
    }
    for (const [what, claims] of Object.entries(good)) {
      it(`are good: ${what}`, async () => {
        expect(await verify(await provider.forge(claims()))).to.have.property('subject')
      })
    }

    it('are refused when they say that they are access tokens', async () => {
      for (const typ of ['at+jwt', 'application/at+jwt', 'logout+jwt']) {
        expect(await refusal(verify(await provider.forge({}, { typ }))), typ).to.deep.equal(INVALID)
      }
      for (const typ of ['JWT', 'jwt']) {
        expect(await verify(await provider.forge({}, { typ })), typ).to.include({ subject: 'forged' })
      }
    })
  })

  it('that are too long are refused, whatever they hold', async () => {
    const padding = 'x'.repeat(12_500)
    expect(await refusal(verify(await provider.forge({ padding })))).to.deep.equal(INVALID)
    expect(await verify(await provider.forge({ padding: padding.slice(0, 11_000) }))).to.include({
      subject: 'forged',
    })
  })

  it('that are garbage are refused, and the keys are not asked for again', async () => {
    await verify(await provider.token())
    const asked = provider.keyRequests
    const texts = [
      '',
      '.',
      '..',
      '...',
      'x',
      'a.b.c',
      'e30.e30.',
      'e30.e30.AAAA',
      'é.é.é',
      '{}',
      'null.null.null',
    ]
    for (const text of texts) expect(await refusal(verify(text)), text).to.deep.equal(INVALID)
    const part = fc.oneof(
      fc.base64String(),
      fc.json().map((json) => Buffer.from(json).toString('base64url')),
      fc
        .record({ alg: fc.constantFrom('RS256', 'ES256', 'EdDSA'), kid: fc.json(), crit: fc.jsonValue() })
        .map((header) => Buffer.from(JSON.stringify(header)).toString('base64url')),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 2, maxLength: 5 }), async (parts) => {
        expect(await refusal(verify(parts.join('.')))).to.deep.equal(INVALID)
      }),
      { numRuns: 200 },
    )
    expect(provider.keyRequests).to.equal(asked)
  })
})

function inSeconds(seconds: number): number {
  return Math.floor(Date.now() / 1_000) + seconds
}

function headerOf(token: string): { alg: string; kid: string } {
  return JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())
}

/** The text with another base64url character at this place. */
function swapped(text: string, at: number): string {
  return text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
}
