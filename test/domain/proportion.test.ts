import { expect } from 'chai'
import { describe, it } from 'mocha'

import { proportion } from '../../internal/domain/proportion.ts'

describe('a proportion', () => {
  it('is rounded half up', () => {
    for (const [amount, part, whole, expected] of [
      [100, 1, 3, 33],
      [100, 2, 3, 67],
      [1, 1, 2, 1],
      [1, 49, 100, 0],
      [0, 1, 2, 0],
      [7, 0, 2, 0],
    ] as const) {
      expect(proportion(amount, part, whole), `${amount} × ${part} ÷ ${whole}`).to.equal(expected)
    }
  })

  it('is exact where the product is beyond all numbers', () => {
    expect(proportion(612_790_775_551, 106_689_075, 168_054_406)).to.equal(389_029_258_847)
    expect(proportion(999_999_999_999, 999_999_999_998, 999_999_999_999)).to.equal(999_999_999_998)
  })
})
