/** Which entries `penstock tail` takes for new. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { DISORDER_MS, type Entry, Followed } from '../../packages/cli/src/follow.ts'

const entry = (id: string, createdAt: number): Entry => ({ id, createdAt })

describe('what is followed', () => {
  it('is told once, oldest first', () => {
    const followed = new Followed<Entry>((each) => each)
    const [a, b, c] = [entry('a', 1_000_000), entry('b', 1_000_001), entry('c', 1_000_001)]
    expect(followed.take([b, a])).to.deep.equal([a, b])
    expect(followed.take([c, b, a])).to.deep.equal([c])
    expect(followed.take([c, b, a])).to.deep.equal([])
  })

  it('may come late, and what is older comes up when others are removed', () => {
    const followed = new Followed<Entry>((each) => each)
    const newest = entry('new', 10 * DISORDER_MS)
    followed.take([newest])
    const late = entry('late', newest.createdAt - DISORDER_MS)
    const old = entry('old', newest.createdAt - DISORDER_MS - 1)
    expect(followed.take([newest, late, old])).to.deep.equal([late])
    expect(followed.horizon).to.equal(late.createdAt)
  })

  it('is everything at first', () => {
    const followed = new Followed<Entry>((each) => each)
    expect(followed.take([entry('b', 9 * DISORDER_MS), entry('a', 0)])).to.have.length(2)
  })
})
