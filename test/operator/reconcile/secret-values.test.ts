import { expect } from 'chai'
import { describe, it } from 'mocha'
import { desiredBufferOf } from '../../../operator/reconcile/desired-buffer.ts'
import { headerValue, secretValue } from '../../../operator/reconcile/secret-values.ts'
import { resource, secret } from './fixtures.ts'

describe('the value of a Secret', () => {
  const at = (value: string) => () => secret('signing', { secret: value })
  const ref = { name: 'signing', key: 'secret' }

  it('loses one line end at its end, and nothing else', () => {
    for (const [stored, value] of [
      ['s3cret', 's3cret'],
      ['s3cret\n', 's3cret'],
      ['s3cret\r\n', 's3cret'],
      ['s3cret\n\n', 's3cret\n'],
      [' s3\ncret ', ' s3\ncret '],
    ] as const)
      expect(secretValue(ref, at(stored))).to.deep.equal({ ok: true, value, hadLineEnd: /\n$/.test(stored) })
  })

  it('is empty when it is a line end alone', () => {
    expect(secretValue(ref, at('\n'))).to.include({ ok: false, reason: 'SecretInvalid' })
  })

  it('is refused in a header with a line end within', () => {
    expect(headerValue(ref, at('a\nb\n'))).to.include({ ok: false, reason: 'SecretInvalid' })
    expect(headerValue(ref, at('a\n'))).to.include({ ok: true, value: 'a' })
  })

  it('names each Secret of which a line end was left out', () => {
    const desired = desiredBufferOf(resource(), at('s3cret\n'))
    expect(desired.ok && desired.lineEnds).to.deep.equal(['secret of Secret signing'])
    expect(desired.ok && desired.config.delivery.signing?.secret).to.equal('s3cret')
  })
})
