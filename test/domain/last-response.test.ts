import { expect } from 'chai'
import { describe, it } from 'mocha'
import { lastResponseOf, MAX_LAST_RESPONSE_BYTES } from '../../internal/domain/last-response.ts'

describe('what a dead letter keeps of an answer', () => {
  it('is nothing of no answer, and all of a short one', () => {
    expect(lastResponseOf(null)).to.equal(null)
    expect(lastResponseOf('')).to.equal(null)
    expect(lastResponseOf('{"error":"no such order"}\n')).to.equal('{"error":"no such order"}\n')
    const longest = 'x'.repeat(MAX_LAST_RESPONSE_BYTES)
    expect(lastResponseOf(longest)).to.equal(longest)
  })

  it('is at most 1,024 bytes, and cuts no character', () => {
    expect(lastResponseOf('x'.repeat(5_000))).to.equal('x'.repeat(1_024))
    for (const [character, bytes] of [
      ['é', 2],
      ['€', 3],
      ['😀', 4],
    ] as const) {
      for (const before of ['', 'x', 'xx', 'xxx']) {
        const kept = lastResponseOf(before + character.repeat(1_024))
        const whole = Math.floor((MAX_LAST_RESPONSE_BYTES - before.length) / bytes)
        expect(kept).to.equal(before + character.repeat(whole))
      }
    }
  })

  it('can be stored: without NUL and without half a character', () => {
    expect(lastResponseOf('a\0b')).to.equal('a\ufffdb')
    expect(lastResponseOf('a\ud800b')).to.equal('a\ufffdb')
    const halved = lastResponseOf(`${'x'.repeat(1_023)}😀`)
    expect(halved).to.equal('x'.repeat(1_023))
  })
})
