import { expect } from 'chai'
import { describe, it } from 'mocha'
import { identityOf, lacksVerifiedEmail } from '../../internal/domain/identity.ts'

const base = { iss: 'https://id.example', sub: 'ada' }

describe('the identity that claims speak of', () => {
  it('is named by issuer and subject', () => {
    expect(identityOf(base)).to.deep.equal({
      ok: true,
      value: {
        issuer: 'https://id.example',
        subject: 'ada',
        password: true,
        anonymous: false,
        emailVerified: false,
        name: undefined,
      },
    })
  })

  it('needs both', () => {
    for (const claims of [
      { sub: 'ada' },
      { iss: 'https://id.example' },
      { ...base, iss: 7 },
      { ...base, iss: '' },
      { ...base, sub: '' },
      { ...base, sub: null },
      { ...base, sub: { $ne: 1 } },
      { ...base, sub: 'x'.repeat(256) },
      { ...base, sub: 'a\u0000' },
      { ...base, sub: '\ud800' },
    ]) {
      expect(identityOf(claims).ok, JSON.stringify(claims)).to.equal(false)
    }
  })

  const names: [claims: object, name: string | undefined][] = [
    [{ name: 'Ada Lovelace', email: 'ada@example.com' }, 'Ada Lovelace'],
    [{ name: '  Ada ', email: 'ada@example.com' }, 'Ada'],
    [{ email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: '', email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: '   ', email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: 7, email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: 'a\u0000b', email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: 'x'.repeat(257), email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: null, email: ['ada@example.com'] }, undefined],
  ]
  for (const [claims, name] of names) {
    it(`is called ${name} by ${JSON.stringify(claims).slice(0, 60)}`, () => {
      expect(identityOf({ ...base, ...claims })).to.have.nested.property('value.name', name)
    })
  }
})

describe('a verified e-mail address', () => {
  const google = { firebase: { sign_in_provider: 'google.com' } }
  const password = { firebase: { sign_in_provider: 'password' } }
  const cases: [claims: object, lacking: boolean][] = [
    [{}, true],
    [{ email_verified: true }, false],
    [{ email_verified: false }, true],
    [{ email_verified: 'true' }, true],
    [{ email_verified: 1 }, true],
    [password, true],
    [{ ...password, email_verified: true }, false],
    [google, false],
    [{ ...google, email_verified: false }, false],
    [{ amr: ['pwd'] }, true],
    [{ amr: ['otp', 'pwd'] }, true],
    [{ amr: ['pwd'], email_verified: true }, false],
    [{ amr: ['otp'] }, false],
    [{ amr: 'pwd' }, true],
    [{ amr: [] }, true],
    [{ amr: [7] }, true],
    [{ amr: { 0: 'otp' } }, true],
    [{ ...google, amr: ['pwd'] }, true],
    [{ ...password, amr: ['otp'] }, true],
    [{ firebase: {} }, true],
    [{ firebase: null }, true],
    [{ firebase: { sign_in_provider: 7 } }, true],
    [{ firebase: 'google.com' }, true],
  ]
  for (const [claims, lacking] of cases) {
    it(`is ${lacking ? 'lacking' : 'not lacking'} with ${JSON.stringify(claims)}`, () => {
      const identity = identityOf({ ...base, ...claims })
      expect(identity.ok && lacksVerifiedEmail(identity.value)).to.equal(lacking)
    })
  }
})
