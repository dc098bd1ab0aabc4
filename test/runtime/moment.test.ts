import { expect } from 'chai'
import { describe, it } from 'mocha'
import { elapsedSince, momentOf } from '../../internal/runtime/moment.ts'

function clocks(monotonic: number, wall: number) {
  return { monotonic: () => monotonic, now: () => wall }
}

describe('a moment', () => {
  const moment = momentOf(clocks(1_000, 1_900_000_000_000))

  it('is as long ago as both clocks say', () => {
    expect(elapsedSince(clocks(1_700, 1_900_000_000_700), moment)).to.equal(700)
  })

  it('is as long ago as the wall clock says when the machine was suspended', () => {
    expect(elapsedSince(clocks(1_700, 1_900_000_060_700), moment)).to.equal(60_700)
  })

  it('is as long ago as the monotonic clock says when the wall clock was set back', () => {
    expect(elapsedSince(clocks(1_700, 1_899_000_000_000), moment)).to.equal(700)
  })
})
