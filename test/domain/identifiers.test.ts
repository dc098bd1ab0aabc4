import { expect } from 'chai'
import { describe, it } from 'mocha'
import { cloneIdentifier, isIdentifier, parseIdentifier } from '../../internal/domain/identifiers.ts'

describe('identifiers', () => {
  for (const good of ['a', 'Z', '0', '-', '_', '...', '.a', 'a.b-c_D9', 'x'.repeat(128)]) {
    it(`takes ${good.slice(0, 20)}`, () => expect(isIdentifier(good)).to.equal(true))
  }

  const bad = [
    ...['', '.', '..', 'x'.repeat(129), 'x'.repeat(10_000), 'a b', ' a', 'a\n', 'a\t', '\u0000', '\u007f'],
    ...['a/b', '../a', '%2f', 'a*', 'a>', 'a:b', 'a\\b', 'é', 'а', 'ａ', 'a\u200b', '🚀', '\ud800'],
    ...[null, undefined, 5, true, {}, ['a']],
  ]
  for (const value of bad) {
    it(`refuses ${JSON.stringify(value)?.slice(0, 20)}`, () => {
      expect(isIdentifier(value)).to.equal(false)
      const parsed = parseIdentifier('projectId', value)
      expect(parsed.ok || parsed.error).to.match(/^projectId (is required|must be 1 to 128 characters)/)
    })
  }

  it('gives clones distinct valid ids, however long the original', () => {
    expect([1, 2, 10].map((n) => cloneIdentifier('orders', n))).to.deep.equal([
      'orders-copy',
      'orders-copy-2',
      'orders-copy-10',
    ])
    const long = [1, 2, 10].map((n) => cloneIdentifier('x'.repeat(128), n))
    expect(new Set(long).size).to.equal(3)
    expect(long.every(isIdentifier)).to.equal(true)
  })
})
