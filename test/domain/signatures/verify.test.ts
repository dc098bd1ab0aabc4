import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { MOST_SIGNATURES } from '../../../internal/domain/signatures/presented.ts'
import { type SignatureScheme, signatureSchemes } from '../../../internal/domain/signatures/schemes.ts'
import { judged, type Vector, vectorOf, vectors } from './vectors.ts'

const STAMPED: readonly SignatureScheme[] = ['stripe', 'slack', 'standard-webhooks']

/** The header of the vector that holds the signature, and its value. */
function signatureOf({ headers }: Vector): [name: string, value: string] {
  return Object.entries(headers).find(([name]) => /signature|hmac/.test(name))!
}

/** A signature of the right length that fits nothing. */
function strange(vector: Vector): string {
  return vector.scheme === 'stripe' ? `v1=${'0'.repeat(64)}` : `v1,${Buffer.alloc(32).toString('base64')}`
}

describe('signatures by the schemes of providers', () => {
  it('have a vector each', () => {
    expect(new Set(vectors.map(({ scheme }) => scheme))).to.deep.equal(new Set(signatureSchemes))
  })

  for (const vector of vectors) {
    describe(vector.name, () => {
      const [name, value] = signatureOf(vector)

      it(`takes the signature that is ${vector.origin}`, () => {
        expect(judged(vector)).to.equal('good')
      })

      it('refuses another body, another secret, and no signature', () => {
        expect(judged(vector, { body: `${vector.body} ` })).to.equal('invalid')
        expect(judged(vector, { rule: { signingSecret: 'YW5vdGhlcg==' } })).to.equal('invalid')
        for (const header of Object.keys(vector.headers))
          expect(judged(vector, { headers: { [header]: '' } }), header).to.equal('missing')
      })

      it('refuses a signature of another form', () => {
        const whole = value.replace(/,v0=.*$/, '')
        const forms = ['x', whole.slice(0, -1), `${whole}0`, whole.toUpperCase(), whole.slice(1), `.${whole}`]
        for (const form of forms)
          expect(judged(vector, { headers: { [name]: form } }), form).to.equal('invalid')
      })

      it('takes the previous secret as well as the present one, and no third', () => {
        const rule = { signingSecret: 'bmV3', previousSecret: vector.secret }
        expect(judged(vector, { rule })).to.equal('good')
        expect(judged(vector, { rule: { previousSecret: 'b2xk' } })).to.equal('good')
        expect(judged(vector, { rule: { signingSecret: 'bmV3', previousSecret: 'b2xk' } })).to.equal(
          'invalid',
        )
      })

      it('reads the header that the buffer names', () => {
        const rule = { signatureHeader: 'X-Other' }
        expect(judged(vector, { rule })).to.equal('missing')
        expect(judged(vector, { rule, headers: { 'x-other': value } })).to.equal('good')
      })
    })
  }

  it('have no time stamp in hex, github and shopify', () => {
    for (const scheme of signatureSchemes.filter((scheme) => !STAMPED.includes(scheme)))
      expect(judged(vectorOf(scheme), { later: 1e9 }), scheme).to.equal('good')
  })
})

describe('the time stamp of a signature', () => {
  for (const scheme of STAMPED) {
    const vector = vectorOf(scheme)

    it(`is within 300 seconds, either way: ${scheme}`, () => {
      for (const later of [-300, 0, 300]) expect(judged(vector, { later }), `${later}`).to.equal('good')
      for (const later of [-301, 301, 1e9]) expect(judged(vector, { later }), `${later}`).to.equal('stale')
    })

    it(`is within what the buffer says: ${scheme}`, () => {
      const rule = { toleranceSeconds: 5 }
      for (const later of [-5, 5]) expect(judged(vector, { later, rule })).to.equal('good')
      for (const later of [-6, 6]) expect(judged(vector, { later, rule })).to.equal('stale')
      expect(judged(vector, { later: 86_400, rule: { toleranceSeconds: 86_400 } })).to.equal('good')
    })

    it(`is told to be stale only where the signature is good: ${scheme}`, () => {
      expect(judged(vector, { later: 301, body: 'another' })).to.equal('invalid')
    })

    it(`is signed, so it cannot be made younger, and is a number of seconds: ${scheme}`, () => {
      const stamp = String(vector.sentAt)
      const stamps = [String(vector.sentAt! + 1), `${stamp}.0`, `+${stamp}`, '-1', 'now', `${stamp}000000000`]
      for (const other of stamps) {
        const headers = Object.entries(vector.headers).map(([name, value]) => [
          name,
          value.replace(stamp, other),
        ])
        expect(judged(vector, { headers: Object.fromEntries(headers) }), other).to.equal('invalid')
      }
    })
  }
})

describe('several signatures in one header', () => {
  const between = { stripe: ',', 'standard-webhooks': ' ' } as const

  for (const scheme of ['stripe', 'standard-webhooks'] as const) {
    const vector = vectorOf(scheme)
    const [name, value] = signatureOf(vector)
    const sent = (others: number, last = value) => {
      const list = [...Array.from({ length: others }, () => strange(vector)), last]
      return judged(vector, { headers: { [name]: list.join(between[scheme]) } })
    }

    it(`are looked at up to the sixteenth: ${scheme}`, () => {
      expect(sent(1)).to.equal('good')
      expect(sent(MOST_SIGNATURES - 1)).to.equal('good')
      expect(sent(MOST_SIGNATURES)).to.equal('invalid')
      expect(sent(3, value.replace('v1', 'v9'))).to.equal('invalid')
    })
  }

  it('count only those of the known version: those of others do not use up the places', () => {
    const vector = vectorOf('standard-webhooks')
    const [name, value] = signatureOf(vector)
    const others = Array.from({ length: 40 }, () => `v1a,${Buffer.alloc(64).toString('base64')}`)
    expect(judged(vector, { headers: { [name]: [...others, value].join(' ') } })).to.equal('good')
  })

  it('cannot come with two time stamps', () => {
    const vector = vectorOf('stripe')
    const [name, value] = signatureOf(vector)
    for (const header of [`t=1,${value}`, `${value},t=1`, value.replace(/t=\d+,/, '')])
      expect(judged(vector, { headers: { [name]: header } }), header).to.equal('invalid')
  })
})

describe('the headers of standard-webhooks', () => {
  const vector = vectorOf('standard-webhooks')

  it('have the beginning of the header that the buffer names', () => {
    const headers = Object.entries(vector.headers).map(([name, value]) => [
      name.replace('webhook', 'svix'),
      value,
    ])
    const svix = { ...vector, headers: Object.fromEntries(headers) }
    expect(judged(svix, { rule: { signatureHeader: 'Svix-Signature' } })).to.equal('good')
    expect(judged(svix)).to.equal('missing')
  })

  it('cannot have an id with a dot: what is signed could be cut in another way', () => {
    const secret = 'c2VjcmV0'
    const body = '1614265330.5'
    const signature = createHmac('sha256', 'secret').update(`m.1614265330.${body}`).digest('base64')
    const sent = (id: string, body: string) =>
      judged(
        {
          ...vector,
          secret,
          body,
          headers: { ...vector.headers, 'webhook-id': id, 'webhook-signature': `v1,${signature}` },
        },
        {},
      )
    expect(sent('m', body)).to.equal('good')
    expect(sent('m.1614265330', '5')).to.equal('invalid')
  })
})
