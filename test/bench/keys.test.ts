import { expect } from 'chai'
import { keyNumbers } from '../../bench/load/keys.ts'

const DRAWS = 200_000

function counts(count: number, zipf: number | undefined, seed: number): number[] {
  const next = keyNumbers(zipf === undefined ? { count } : { count, zipf }, seed)
  const found = new Array<number>(count).fill(0)
  for (let draw = 0; draw < DRAWS; draw++) found[next()]!++
  return found
}

describe('keys of the load', () => {
  it('come alike', () => {
    const found = counts(100, undefined, 1)
    expect(Math.min(...found)).to.be.above((0.85 * DRAWS) / 100)
    expect(Math.max(...found)).to.be.below((1.15 * DRAWS) / 100)
  })

  it('follow Zipf’s law', () => {
    const found = counts(1_000, 1.1, 1)
    let sum = 0
    for (let n = 1; n <= 1_000; n++) sum += n ** -1.1
    for (const rank of [1, 2, 10, 50]) {
      const expected = (DRAWS * rank ** -1.1) / sum
      expect(found[rank - 1]! / expected, `rank ${rank}`).to.be.within(0.85, 1.15)
    }
    expect(found.reduce((all, one) => all + one)).to.equal(DRAWS)
  })

  it('are the same for the same seed, others for another', () => {
    const first = (seed: number) => {
      const next = keyNumbers({ count: 10_000, zipf: 1.1 }, seed)
      return Array.from({ length: 20 }, next)
    }
    expect(first(3)).to.deep.equal(first(3))
    expect(first(3)).not.to.deep.equal(first(4))
  })
})
