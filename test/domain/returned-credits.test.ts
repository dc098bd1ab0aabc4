import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { isReturned, returnedCredits } from '../../internal/domain/returned-credits.ts'

describe('money that goes back', () => {
  for (const [returned, credits] of [
    [0, 0],
    [4, 0],
    [5, 1],
    [250, 25],
    [995, 100],
    [1_000, 100],
    [5_000, 100],
  ] as const) {
    it(`takes ${credits} of 100 credits for ${returned} of 1000 cents`, () => {
      expect(returnedCredits(100, 1_000, returned)).to.equal(credits)
    })
  }

  it('takes nothing of what cost nothing', () => {
    expect(returnedCredits(100, 0, 0)).to.equal(0)
    expect(returnedCredits(100, 0, 5)).to.equal(0)
    expect(isReturned(0, 0)).to.equal(false)
  })

  it('is all of it at the whole amount', () => {
    expect([isReturned(1_000, 999), isReturned(1_000, 1_000)]).to.deep.equal([false, true])
  })

  it('takes more as more goes back, and at the end exactly all', () => {
    const whole = fc.integer({ min: 1, max: 1_000_000_000 })
    fc.assert(
      fc.property(whole, whole, fc.double({ min: 0, max: 1, noNaN: true }), (credits, amount, part) => {
        const some = Math.floor(amount * part)
        expect(returnedCredits(credits, amount, some)).to.be.at.most(
          returnedCredits(credits, amount, Math.min(amount, some + 1)),
        )
        expect(returnedCredits(credits, amount, amount)).to.equal(credits)
      }),
    )
  })
})
