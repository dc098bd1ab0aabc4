import { expect } from 'chai'
import { describe, it } from 'mocha'
import { sign, verifySignature } from '../../internal/domain/signature.ts'

const body = Buffer.from('what do ya want for nothing?')
/** RFC 4231, test case 2. */
const KNOWN = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'

describe('signatures', () => {
  it('are the lower-case hex HMAC-SHA256 of the raw bytes', () => {
    expect(sign('Jefe', body)).to.equal(KNOWN)
    expect(sign('Jefe', Buffer.from([0xff, 0x00]))).to.match(/^[0-9a-f]{64}$/)
    expect(sign('größe', body)).not.to.equal(sign('gr\u00f6\u00dfE', body))
  })

  it('verify', () => {
    expect(verifySignature('Jefe', body, KNOWN)).to.equal(true)
    expect(verifySignature('Jefe', Buffer.alloc(0), sign('Jefe', Buffer.alloc(0)))).to.equal(true)
  })

  const bad = [
    '',
    KNOWN.toUpperCase(),
    KNOWN.slice(1),
    `${KNOWN}0`,
    ` ${KNOWN}`,
    `sha256=${KNOWN}`,
    KNOWN.replace('5', '6'),
    Buffer.from(KNOWN, 'hex').toString('base64'),
    'ö'.repeat(64),
    'x'.repeat(1_000_000),
  ]
  for (const presented of bad) {
    it(`refuse ${JSON.stringify(presented.slice(0, 20))} of ${presented.length}`, () => {
      expect(verifySignature('Jefe', body, presented)).to.equal(false)
    })
  }

  it('refuse another secret and another body', () => {
    expect(verifySignature('jefe', body, KNOWN)).to.equal(false)
    expect(verifySignature('Jefe', Buffer.concat([body, Buffer.from('\n')]), KNOWN)).to.equal(false)
  })
})
