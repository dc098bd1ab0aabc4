import { expect } from 'chai'
import { describe, it } from 'mocha'
import { analyticsDays, listLimit, parseCount, parseParameter } from '../../internal/domain/query.ts'

describe('counts in a query', () => {
  const ranges: [name: string, range: { fallback: number; max: number }, fallback: number, max: number][] = [
    ['limit', listLimit(100), 100, 500],
    ['limit', listLimit(50), 50, 500],
    ['days', analyticsDays, 7, 90],
  ]
  for (const [name, range, fallback, max] of ranges) {
    it(`take ${name} from 1 to ${max}, ${fallback} when absent`, () => {
      expect(parseCount(name, undefined, range)).to.deep.equal({ ok: true, value: fallback })
      expect(parseCount(name, '1', range)).to.deep.equal({ ok: true, value: 1 })
      expect(parseCount(name, String(max), range)).to.deep.equal({ ok: true, value: max })
      const error = `${name} must be an integer from 1 to ${max}`
      for (const bad of ['0', '-1', String(max + 1), '']) {
        expect(parseCount(name, bad, range), bad).to.deep.equal({ ok: false, error })
      }
    })
  }

  for (const bad of [
    'NaN',
    'Infinity',
    '1e2',
    '0x10',
    '1.5',
    '1.0',
    '+5',
    ' 5',
    '5 ',
    '05',
    '٥',
    '9'.repeat(400),
  ]) {
    it(`refuse ${bad.slice(0, 10)}`, () => {
      expect(parseCount('limit', bad, listLimit(50)).ok).to.equal(false)
    })
  }

  it('refuse a repeated parameter and name it', () => {
    expect(parseCount('limit', ['5', '5'], listLimit(50))).to.deep.equal({
      ok: false,
      error: 'limit must be given once',
    })
    expect(parseParameter('customerId', ['a', 'b'])).to.deep.equal({
      ok: false,
      error: 'customerId must be given once',
    })
    expect(parseParameter('customerId', 'a')).to.deep.equal({ ok: true, value: 'a' })
    expect(parseParameter('customerId', undefined)).to.deep.equal({ ok: true, value: undefined })
  })
})
