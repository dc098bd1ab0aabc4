import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { type PlacedMember, placeShards } from '../../../internal/shard/ownership/placement.ts'
import { rendezvousSeed, rendezvousWeight } from '../../../internal/shard/ownership/rendezvous.ts'
import { carriedOut, idle, loadsOf, movedShards, shardCount, someBoots } from '../memberships.ts'

/** What leases may tell when all goes wrong: shards of several, of nobody, twice, and numbers that are none. */
const anyNumber = fc.oneof(fc.integer({ min: -2, max: 125 }), fc.double(), fc.constant(-0))
const anyMembers = fc.array(
  fc.record({
    boot: fc.oneof(fc.constantFrom('a', 'b', 'c', 'd'), fc.string()),
    shards: fc.array(anyNumber),
  }),
  { maxLength: 10 },
)

function shuffled<T>(values: readonly T[], order: readonly number[]): T[] {
  const keys = values.map((_, index) => order[index % Math.max(1, order.length)] ?? 0)
  return [...values.keys()].sort((a, b) => keys[a]! - keys[b]! || b - a).map((index) => values[index]!)
}

function heaviest(boots: readonly string[], shard: number): string {
  const weigh = (boot: string) => rendezvousWeight(rendezvousSeed(boot), shard)
  return boots.reduce((best, boot) => (weigh(boot) > weigh(best) ? boot : best))
}

describe('placement of shards', () => {
  it('gives the same answers for ever: during an upgrade nodes of two releases must plan alike', () => {
    const cold = placeShards(8, idle(['a', 'b', 'c']))
    expect(cold.join('')).to.equal('cabcbcaa')
    expect(placeShards(8, carriedOut(cold, ['a', 'b', 'c', 'd'])).join(''), 'd joins').to.equal('cdbdbcaa')
    expect(placeShards(8, carriedOut(cold, ['a', 'c'])).join(''), 'b leaves').to.equal('caccacaa')
    expect(placeShards(3, idle(['a', 'b', 'c', 'd', 'e'])).join(''), 'few shards').to.equal('edb')
    const alone = { boot: 'a', shards: [0, 1, 2, 3, 4, 5] }
    expect(placeShards(6, [alone, ...idle(['b', 'c'])]).join(''), 'two join at once').to.equal('cabcba')
  })

  it('has an answer where there is no choice', () => {
    expect(placeShards(3, [])).to.deep.equal([null, null, null])
    expect(placeShards(0, idle(['a']))).to.deep.equal([])
    expect(placeShards(2, idle(['a']))).to.deep.equal(['a', 'a'])
    expect(placeShards(2, idle(['']))).to.deep.equal(['', ''])
  })

  it('takes from a member with too many the shards for which it is the lightest', () => {
    const plan = placeShards(12, [
      { boot: 'a', shards: Array.from({ length: 12 }, (_, n) => n) },
      ...idle(['b']),
    ])
    const weights = plan.map((_, shard) => rendezvousWeight(rendezvousSeed('a'), shard))
    const keeps = weights.filter((_, shard) => plan[shard] === 'a')
    const gives = weights.filter((_, shard) => plan[shard] === 'b')
    expect([keeps.length, gives.length]).to.deep.equal([6, 6])
    expect(Math.min(...keeps)).to.be.above(Math.max(...gives))
  })

  it('places a shard that nobody has on the heaviest member that has room', () => {
    fc.assert(
      fc.property(someBoots, fc.integer({ min: 0, max: 119 }), (boots, shard) => {
        const shards = 10 * boots.length
        const before = placeShards(shards, idle(boots))
        const lost = shard % shards
        const candidates = boots.filter((boot) => boot !== before[lost])
        const members = carriedOut(before.toSpliced(lost, 1, null), boots)
        expect(placeShards(shards, members), 'only one has room').to.deep.equal(before)
        if (candidates.length === 0) return
        const after = placeShards(shards, carriedOut(before.toSpliced(lost, 1, null), candidates))
        const [first] = movedShards(before, after)
        expect(after[first!], 'all have room').to.equal(heaviest(candidates, first!))
      }),
    )
  })

  it('counts a shard of several members for the heaviest', () => {
    fc.assert(
      fc.property(someBoots, shardCount, (boots, shard) => {
        // One shard a member, so nobody has too many, whoever keeps it.
        const members = boots.map((boot) => ({ boot, shards: [shard] }))
        const plan = placeShards(shard + boots.length, members)
        expect(plan[shard]).to.equal(heaviest(boots, shard))
      }),
    )
  })

  it('is level and complete, whatever the members tell', () => {
    fc.assert(
      fc.property(shardCount, anyMembers, (shards, members) => {
        const boots = [...new Set(members.map(({ boot }) => boot))]
        const plan = placeShards(shards, members)
        expect(plan).to.have.lengthOf(shards)
        fc.pre(boots.length > 0)
        const loads = loadsOf(plan, boots)
        expect(
          loads.reduce((sum, load) => sum + load, 0),
          'all are placed on members',
        ).to.equal(shards)
        expect(Math.max(...loads) - Math.min(...loads)).to.be.at.most(1)
        expect(Math.max(...loads)).to.be.at.most(Math.ceil((1.25 * shards) / boots.length))
      }),
      { numRuns: 1_000 },
    )
  })

  it('changes nothing when planned again after it was carried out', () => {
    fc.assert(
      fc.property(shardCount, anyMembers, (shards, members) => {
        const plan = placeShards(shards, members)
        const boots = [...new Set(members.map(({ boot }) => boot))]
        expect(placeShards(shards, carriedOut(plan, boots))).to.deep.equal(plan)
      }),
    )
  })

  it('is the same for every order of members and shards, and however a member is told', () => {
    const orders = fc.array(fc.nat(), { minLength: 1 })
    fc.assert(
      fc.property(shardCount, anyMembers, orders, (shards, members, order) => {
        const parts = members.flatMap(({ boot, shards: running }) => [
          { boot, shards: shuffled(running, order) },
          { boot, shards: running.slice(0, order.length) },
        ])
        expect(placeShards(shards, shuffled(parts, order))).to.deep.equal(placeShards(shards, members))
      }),
    )
  })

  it('leaves its arguments as they are', () => {
    const members: PlacedMember[] = [
      { boot: 'b', shards: Object.freeze([3, 1, 0, 2, 1]) },
      { boot: 'a', shards: Object.freeze([]) },
    ]
    placeShards(4, Object.freeze(members.map((member) => Object.freeze(member))))
    expect(members[0]!.shards).to.deep.equal([3, 1, 0, 2, 1])
  })
})
