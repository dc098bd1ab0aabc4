/** The signature check of `packages/receiver`. */
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { sign, verify } from '../../packages/receiver/src/signature.ts'

const VECTORS = join(import.meta.dirname, '..', '..', 'api', 'vectors', 'deliveries.json')
const BODY = Buffer.from('{"items":[{"payload":{"name":"Åsa"}}]}')
const OWN = createHmac('sha256', 's3cret').update(BODY).digest('hex')

describe('the signature of a delivery', () => {
  it('is the lower-case hex HMAC-SHA256 of the raw body', () => {
    expect(sign(BODY, 's3cret')).to.equal(OWN)
    expect(verify(BODY, { 'x-svc-signature': OWN }, 's3cret')).to.equal(true)
    expect(verify(BODY.toString(), new Headers({ 'X-Svc-Signature': OWN }), 's3cret')).to.equal(true)
  })

  it('is taken of any of several secrets, wherever it stands', () => {
    const headers = { 'x-svc-signature': OWN }
    expect(verify(BODY, headers, ['s3cret', 'n3xt'])).to.equal(true)
    expect(verify(BODY, headers, ['n3xt', 's3cret'])).to.equal(true)
    expect(verify(BODY, headers, ['n3xt', 'other'])).to.equal(false)
  })

  it('is read from the header that the buffer names, whatever its case', () => {
    const options = { signatureHeader: 'X-Signed' }
    expect(verify(BODY, { 'x-sIGNED': OWN }, 's3cret', options)).to.equal(true)
    expect(verify(BODY, { 'x-svc-signature': OWN }, 's3cret', options)).to.equal(false)
  })

  it('is refused when it is anything else', () => {
    const others = [
      '',
      '00',
      OWN.toUpperCase(),
      `${OWN} `,
      `${OWN}00`,
      OWN.slice(2),
      `sha256=${OWN}`,
      'é'.repeat(64),
    ]
    for (const other of others)
      expect(verify(BODY, { 'x-svc-signature': other }, 's3cret'), other).to.equal(false)
    expect(verify(BODY, {}, 's3cret')).to.equal(false)
    expect(verify(BODY, { 'x-svc-signature': [OWN, OWN] }, 's3cret')).to.equal(false)
    expect(verify(BODY, { 'x-svc-signature': OWN, 'X-Svc-Signature': '00' }, 's3cret')).to.equal(false)
    const twice = new Headers([
      ['x-svc-signature', OWN],
      ['x-svc-signature', OWN],
    ])
    expect(verify(BODY, twice, 's3cret')).to.equal(false)
  })

  it('is refused for every changed bit of the body', () => {
    for (let at = 0; at < BODY.length; at++) {
      const changed = Buffer.from(BODY)
      changed[at]! ^= 1
      expect(verify(changed, { 'x-svc-signature': OWN }, 's3cret')).to.equal(false)
    }
  })

  it('is not checked without a secret: anybody could sign', () => {
    const empty = createHmac('sha256', '').update(BODY).digest('hex')
    for (const secrets of ['', [], [''], ['s3cret', ''], undefined, [undefined]]) {
      const check = () => verify(BODY, { 'x-svc-signature': empty }, secrets as string[])
      expect(check, JSON.stringify(secrets)).to.throw(TypeError, 'secrets must be')
    }
  })

  it('is not checked over a body that was parsed', () => {
    const parsed = JSON.parse(BODY.toString())
    const check = () => verify(parsed, { 'x-svc-signature': OWN }, 's3cret')
    expect(check).to.throw(TypeError, 'rawBody must be the bytes of the request')
  })

  it('is judged as in every language: each vector of api/vectors', () => {
    const { vectors } = JSON.parse(readFileSync(VECTORS, 'utf8'))
    expect(vectors).to.have.length.above(15)
    for (const { name, body, bodyBase64, secrets, signature, valid } of vectors) {
      const raw = bodyBase64 === undefined ? Buffer.from(body) : Buffer.from(bodyBase64, 'base64')
      expect(verify(raw, { 'x-svc-signature': signature }, secrets), name).to.equal(valid)
    }
  })
})
