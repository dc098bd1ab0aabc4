import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { overlap, withoutSecrets } from '../../internal/domain/echoed-secrets.ts'
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

  it('has no part of a cookie or of a quoted token, and no secret that is escaped', () => {
    const headers = {
      cookie: 'sid=abcdef123456',
      'x-token': 'Token token="abcdef987654"',
      'x-quoted': 'ab"cdefgh',
    }
    const answer = '{"sid":"abcdef123456","token":"abcdef987654","quoted":"ab\\"cdefgh"}'
    expect(withoutSecrets(answer, { headers })).to.equal(
      '{"sid":"[redacted]","token":"[redacted]","quoted":"[redacted]"}',
    )
  })

  it('is cut where a secret begins at its end, whatever both are', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 })
    fc.assert(
      fc.property(text, text, (end, secret) => {
        const longest = Math.min(end.length, secret.length - 1)
        const lengths = Array.from({ length: Math.max(0, longest) }, (_, less) => longest - less)
        const naive = lengths.find((length) => end.endsWith(secret.slice(0, length))) ?? 0
        expect(overlap(secret === '' ? '' : end.slice(-secret.length + 1 || end.length), secret)).to.equal(
          naive,
        )
      }),
      { numRuns: 2_000 },
    )
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
