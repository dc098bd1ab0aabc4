import { expect } from 'chai'
import { describe, it } from 'mocha'
import { withoutSecrets } from '../../internal/domain/buffer-secrets.ts'
import { storedBuffer } from './sample-buffer.ts'

const HEADERS = { Authorization: 'Bearer abc-123-def', 'X-Team': 'web', 'X-Key': 's3cret-value' }

describe('what is kept of an answer', () => {
  const { delivery } = storedBuffer()
  const signing = { type: 'hmac-sha256' as const, secret: 'signing-secret', header: 'x-sign' }
  const kept = (answer: string) => withoutSecrets(answer, { ...delivery, headers: HEADERS, signing })

  it('has no value of a header, whole or in its words, and no signing secret', () => {
    expect(kept('{"authorization":"Bearer abc-123-def","x-key":"s3cret-value"}')).to.equal(
      '{"authorization":"[redacted]","x-key":"[redacted]"}',
    )
    expect(kept('bad token abc-123-def, bad secret signing-secret')).to.equal(
      'bad token [redacted], bad secret [redacted]',
    )
  })

  it('has no beginning of a secret where the answer was cut', () => {
    expect(kept('you sent s3cret-v')).to.equal('you sent [redacted]')
  })

  it('keeps values of less than 6 characters', () => {
    expect(kept('the web team')).to.equal('the web team')
  })

  it('is the answer where nothing is secret', () => {
    expect(
      withoutSecrets('Bearer abc-123-def', { ...delivery, headers: undefined, signing: undefined } as never),
    ).to.equal('Bearer abc-123-def')
  })
})
