import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { type PlacedMember, placeShards } from '../../../internal/shard/ownership/placement.ts'
import { carriedOut, idle, loadsOf, movedShards, type Plan, shardCount, someBoots } from '../memberships.ts'

/** Nodes that have come and gone, and carried out a plan each time. */
const history = fc
  .record({ shards: shardCount, boots: someBoots, leavers: fc.array(fc.nat(), { maxLength: 4 }) })
  .map(({ shards, boots, leavers }) => {
    let live = boots
    let plan = placeShards(shards, idle(live))
    for (const [turn, leaver] of leavers.entries()) {
      if (live.length > 1) live = live.toSpliced(leaver % live.length, 1)
      plan = placeShards(shards, carriedOut(plan, live))
      live = [...live, `joiner ${turn}`]
      plan = placeShards(shards, carriedOut(plan, live))
    }
    return { shards, live, plan }
  })

/** A change of the members of such an installation: some leave, others come, never all leave. */
const turnover = fc
  .record({ from: history, leave: fc.nat({ max: 11 }), join: fc.nat({ max: 5 }) })
  .map(({ from: { shards, live, plan }, leave, join }) => {
    const stay = live.slice(Math.min(leave, live.length - 1))
    const boots = [...stay, ...Array.from({ length: join }, (_, n) => `new ${n}`)]
    return { shards, boots, before: plan, after: placeShards(shards, carriedOut(plan, boots)) }
  })

/** Loads that no plan made, and shards of nobody. */
const disorder = fc
  .array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'gone'), { maxLength: 60 })
  .map((before: Plan) => {
    const boots = ['a', 'b', 'c', 'd', 'e']
    return {
      shards: before.length,
      boots,
      before,
      after: placeShards(before.length, carriedOut(before, boots)),
    }
  })

const change = fc.oneof(turnover, disorder)

/** At least this many shards move when loads must be level: those above the floor, one less for each extra. */
function fewestMoves(shards: number, loads: readonly number[]): number {
  const floor = Math.floor(shards / loads.length)
  const above = loads.filter((load) => load > floor)
  return above.reduce((sum, load) => sum + load - floor, 0) - Math.min(shards % loads.length, above.length)
}

/** Shards that leave a member which runs them. */
function torn(before: Plan, after: Plan): number {
  return movedShards(before, after).filter((shard) => before[shard] !== null).length
}

/** All plans in which no member has two shards more than another. */
function levelPlans(shards: number, boots: readonly string[]): Plan[] {
  let plans: Plan[] = [[]]
  for (let shard = 0; shard < shards; shard++) {
    plans = plans.flatMap((plan) => boots.map((boot) => [...plan, boot]))
  }
  return plans.filter((plan) => {
    const loads = loadsOf(plan, boots)
    return Math.max(...loads) - Math.min(...loads) <= 1
  })
}

describe('a change of the members', () => {
  it('that is a join moves floor(S/N) shards, all to the joiner', () => {
    fc.assert(
      fc.property(history, ({ shards, live, plan }) => {
        const after = placeShards(shards, [...carriedOut(plan, live), { boot: 'new', shards: [] }])
        const moved = movedShards(plan, after)
        expect(moved).to.have.lengthOf(Math.floor(shards / (live.length + 1)))
        for (const shard of moved) expect(after[shard]).to.equal('new')
      }),
    )
  })

  it('that is a leave moves the shards of the leaver, and no other', () => {
    fc.assert(
      fc.property(history, fc.nat(), ({ shards, live, plan }, which) => {
        fc.pre(live.length > 1)
        const leaver = live[which % live.length]!
        const rest = live.filter((boot) => boot !== leaver)
        const moved = movedShards(plan, placeShards(shards, carriedOut(plan, rest)))
        expect(moved).to.deep.equal(carriedOut(plan, [leaver])[0]!.shards)
      }),
    )
  })

  it('of any size moves just as many shards as level loads ask for', () => {
    fc.assert(
      fc.property(change, ({ shards, boots, before, after }) => {
        const homeless = before.filter((boot) => !boots.includes(boot!)).length
        const moved = movedShards(before, after).length
        expect(moved).to.equal(homeless + fewestMoves(shards, loadsOf(before, boots)))
      }),
      { numRuns: 500 },
    )
  })

  it('moves the fewest of all level plans', () => {
    const holder = fc.constantFrom('a', 'b', 'c', null)
    fc.assert(
      fc.property(fc.array(holder, { maxLength: 6 }), (before) => {
        const boots = ['a', 'b', 'c']
        const after = placeShards(before.length, carriedOut(before, boots))
        const fewest = Math.min(...levelPlans(before.length, boots).map((plan) => torn(before, plan)))
        expect(torn(before, after)).to.equal(fewest)
      }),
    )
  })

  it('is planned the same again while it is half carried out', () => {
    fc.assert(
      fc.property(
        change,
        fc.infiniteStream(fc.nat({ max: 3 })),
        ({ shards, boots, before, after }, steps) => {
          const running = carriedOut(after, boots).map(({ boot, shards: placed }) => ({
            boot,
            shards: placed.filter((shard) => before[shard] === boot),
          }))
          const at = (boot: string | null) => running.find((member) => member.boot === boot)
          for (const shard of movedShards(before, after)) {
            // Still with its old owner, let go of, told by both (leases lag), or with its new owner.
            const step = steps.next().value
            if (step === 0 || step === 2) at(before[shard]!)?.shards.push(shard)
            if (step >= 2) at(after[shard]!)!.shards.push(shard)
          }
          expect(placeShards(shards, running)).to.deep.equal(after)
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe('nodes that see different members', () => {
  it('agree as soon as they see the same, and one plan brings rest', () => {
    const seen = fc.infiniteStream(fc.boolean())
    let disputes = 0
    fc.assert(
      fc.property(shardCount, someBoots, fc.nat({ max: 4 }), seen, (shards, boots, rounds, sees) => {
        let running = carriedOut(placeShards(shards, idle(boots)), boots)
        for (let round = 0; round < rounds; round++) running = confusedRound(shards, running, sees)
        if (running.reduce((sum, member) => sum + member.shards.length, 0) > shards) disputes++
        const plans = boots.map((_, turn) =>
          placeShards(shards, [...running.slice(turn), ...running.slice(0, turn)]),
        )
        for (const plan of plans) expect(plan).to.deep.equal(plans[0])
        const settled = carriedOut(plans[0]!, boots)
        expect(placeShards(shards, settled)).to.deep.equal(plans[0])
      }),
    )
    expect(disputes, 'runs in which several nodes had one shard').to.be.above(0)
  })
})

/** Each node sees itself and some others as they were, and runs at once what its own plan gives to it. */
function confusedRound(
  shards: number,
  members: PlacedMember[],
  sees: IterableIterator<boolean>,
): PlacedMember[] {
  return members.map((self) => {
    const view = members.filter((member) => member === self || sees.next().value)
    return carriedOut(placeShards(shards, view), [self.boot])[0]!
  })
}
