import { expect } from 'chai'
import { describe, it } from 'mocha'
import { rendezvousSeed, rendezvousWeight } from '../../../internal/shard/ownership/rendezvous.ts'

const SHARDS = 20_000
const seeds = Array.from({ length: 20 }, (_, number) => rendezvousSeed(`node-${number}`))

/** The heaviest member of a shard, and the next. */
function ranked(shard: number): [number, number] {
  const order = seeds
    .map((seed, member) => ({ member, weight: rendezvousWeight(seed, shard) }))
    .sort((a, b) => b.weight - a.weight)
  return [order[0]!.member, order[1]!.member]
}

/** Sum of squared distances from equal parts: with c classes about c - 1, rarely above c - 1 + 5·sqrt(2·(c - 1)). */
function chiSquare(counts: readonly number[]): number {
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length
  return counts.reduce((sum, count) => sum + (count - mean) ** 2 / mean, 0)
}

describe('rendezvous weights', () => {
  it('stay what they are: during an upgrade nodes of two releases must plan alike', () => {
    const seed = rendezvousSeed('0b0e7e4c-7c2b-4a52-9a5a-6d3a0f6f2f11')
    expect([0, 1, 2, 4_095].map((shard) => rendezvousWeight(seed, shard))).to.deep.equal([
      3_321_189_900_887_439, 1_443_009_290_389_707, 438_536_291_142_944, 4_352_065_303_533_520,
    ])
  })

  it('are whole numbers that a double holds, for any boot', () => {
    for (const boot of ['', 'a', 'ü', '\ud800', 'x'.repeat(10_000)]) {
      for (const shard of [0, 1, 4_095, 2 ** 32 - 1]) {
        const weight = rendezvousWeight(rendezvousSeed(boot), shard)
        expect(Number.isSafeInteger(weight) && weight >= 0, `${boot} ${shard}`).to.equal(true)
      }
    }
  })

  it('make each member the heaviest of an equal part of the shards', () => {
    const firsts = seeds.map(() => 0)
    for (let shard = 0; shard < SHARDS; shard++) firsts[ranked(shard)[0]]!++
    expect(chiSquare(firsts)).to.be.below(19 + 5 * Math.sqrt(2 * 19))
  })

  it('spread the shards of one member evenly over the others that come next', () => {
    const seconds = seeds.map(() => 0)
    for (let shard = 0; shard < SHARDS * 5; shard++) {
      const [first, second] = ranked(shard)
      if (first === 0) seconds[second]!++
    }
    expect(chiSquare(seconds.slice(1))).to.be.below(18 + 5 * Math.sqrt(2 * 18))
  })

  it('have a bit from everywhere: none is always set, or always as another', () => {
    const bits = 53
    const set = Array.from({ length: bits }, () => 0)
    const alike = Array.from({ length: bits }, () => 0)
    for (let shard = 0; shard < SHARDS; shard++) {
      const weight = BigInt(rendezvousWeight(seeds[0]!, shard))
      for (let bit = 0; bit < bits; bit++) {
        const value = (weight >> BigInt(bit)) & 1n
        if (value === 1n) set[bit]!++
        if (value === ((weight >> BigInt((bit + 1) % bits)) & 1n)) alike[bit]!++
      }
    }
    const tolerance = 6 * Math.sqrt(SHARDS / 4)
    for (const count of [...set, ...alike]) expect(count).to.be.closeTo(SHARDS / 2, tolerance)
  })
})
