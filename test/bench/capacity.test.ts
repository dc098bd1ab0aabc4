import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { errorsOf, leastSquares, type Point, replicatedOf } from '../../bench/capacity/fit.ts'
import { PAGE, pageOf, readMeasured } from '../../bench/capacity/main.ts'
import {
  type Constants,
  type Demand,
  openMs,
  packItems,
  plan,
  ROLES,
  type Role,
} from '../../bench/capacity/model.ts'
import { simulateShard } from '../../bench/capacity/shard-simulation.ts'
import { CHOICES, constantsOf, DEMANDS, predicted, predictedMemory } from '../../bench/capacity/tables.ts'
import { defaultPolicy } from '../group/notation.ts'
import { seededFractions } from '../support/seeded.ts'

/** How far a figure of the model may be from the measured one. */
const TOLERANCE = 0.2

describe('the page about capacity', () => {
  it('has the tables that follow from what was measured', () => {
    const page = readFileSync(PAGE, 'utf8')
    const current = page === pageOf(page, readMeasured())
    expect(current, 'stale: run `node bench/capacity/main.ts`').to.equal(true)
  })

  it('stands on a model that predicts other loads within 20 %', () => {
    for (const { all, pack } of predicted(readMeasured())) {
      expect(all, 'CPU').to.be.within(1 - TOLERANCE, 1 / (1 - TOLERANCE))
      expect(pack, 'items a pack').to.be.within(1 - TOLERANCE, 1 / (1 - TOLERANCE))
    }
    for (const role of ROLES) {
      const each = Object.values(constantsOf(readMeasured()).costs[role])
      expect(Math.min(...each), role).to.be.at.least(0)
    }
    for (const memory of predictedMemory(readMeasured())) {
      expect(memory, 'memory').to.be.within(1 - TOLERANCE, 1 / (1 - TOLERANCE))
    }
  })
})

describe('the model of capacity', () => {
  const costs = {
    ingresses: { item: 40, pack: 60, batch: 0, second: 50_000, shard: 0 },
    actors: { item: 10, pack: 50, batch: 200, second: 80_000, shard: 0 },
    NATS: { item: 5, pack: 30, batch: 10, second: 0, shard: 0 },
    Postgres: { item: 1, pack: 0, batch: 0, second: 1_000, shard: 500 },
  }
  const memory = { process: 180e6, group: 1_300 }
  const constants: Constants = { costs, packMs: { 1: 2, 3: 2 }, three: { times: 2, second: 0 }, memory }

  function pointOf(itemsPerSecond: number, shards: number, batchItems: number): Point {
    const items = packItems(itemsPerSecond / shards, openMs(shards, constants.packMs[1], 0))
    const cpuUs = ROLES.map((role): [Role, number] => {
      const { item, pack, batch, second, shard } = costs[role]
      return [role, item + pack / items + batch / batchItems + (second + shards * shard) / itemsPerSecond]
    })
    return {
      shards,
      keys: 1_000,
      itemsPerSecond,
      packItems: items,
      batchItems,
      secondsAnItem: 1 / itemsPerSecond,
      cpuUs: Object.fromEntries(cpuUs) as Record<Role, number>,
    }
  }

  it('finds the constants that its points were made with', () => {
    const points = [pointOf(2_000, 1, 2), pointOf(9_000, 1, 10), pointOf(9_000, 8, 30), pointOf(4_000, 8, 1)]
    const found = leastSquares(points)
    expect(found.packMs).to.be.closeTo(2, 0.01)
    for (const role of ROLES) {
      for (const part of ['item', 'pack', 'batch', 'second', 'shard'] as const) {
        expect(found.costs[role][part], `${role}, ${part}`).to.be.closeTo(costs[role][part], 0.5)
      }
    }
    expect(errorsOf(pointOf(5_000, 2, 5), found).all).to.be.closeTo(1, 0.01)
  })

  it('finds what three brokers take, and never less than three copies of the work', () => {
    const three = [pointOf(3_000, 1, 2), pointOf(1_000, 1, 5)].map((point) => {
      const anyway = 3 * 150_000 * point.secondsAnItem
      const moving = costs.NATS.item + costs.NATS.pack / point.packItems + costs.NATS.batch / point.batchItems
      return { ...point, cpuUs: { ...point.cpuUs, NATS: 5 * moving + anyway } }
    })
    const found = replicatedOf(three, costs.NATS)
    expect(found.times).to.be.closeTo(5, 0.1)
    expect(found.second).to.be.closeTo(150_000, 3_000)
    const dear = three.map((point) => ({
      ...point,
      cpuUs: { ...point.cpuUs, NATS: 2_000_000 * point.secondsAnItem },
    }))
    expect(replicatedOf(dear, costs.NATS).times).to.equal(3)
  })

  it('needs no less of anything for more items', () => {
    for (const choice of CHOICES) {
      const plans = DEMANDS.map((demand) => plan(demand, choice, constants))
      for (const [n, made] of plans.entries()) {
        if (n === 0) continue
        const before = plans[n - 1]!
        expect(made.ingresses).to.be.at.least(before.ingresses)
        expect(made.actors).to.be.at.least(before.actors)
        expect(made.cores.actors).to.be.above(before.cores.actors)
      }
    }
  })

  it('makes smaller packs of more shards, until these wait for their turn instead', () => {
    const withShards = (demand: Demand) =>
      [1, 4].map((shardsAnActor) => plan(demand, { ...CHOICES[0]!, shardsAnActor }, constants))
    const [few, more] = withShards(DEMANDS[0]!)
    expect(more!.packItems).to.be.below(few!.packItems)
    expect(more!.cores.NATS).to.be.above(few!.cores.NATS)
    const [many, most] = withShards(DEMANDS[2]!)
    expect(most!.packItems).to.be.closeTo(many!.packItems, 0.01)
    expect(most!.openMs).to.be.closeTo(4 * many!.openMs, 0.01)
  })

  it('gives each process no more than it is planned to be busy with', () => {
    const [demand] = DEMANDS
    const made = plan(demand!, CHOICES[0]!, constants)
    expect(made.cores.ingresses).to.be.at.most(made.ingresses)
    expect(made.cores.actors).to.be.at.most(made.actors)
  })

  it('takes its constants from the fitted points alone', () => {
    const measured = readMeasured()
    const { calibration, memory } = measured
    const nothing = { checked: [], threeChecked: [], synced: { syncMs: 0, checked: [] } }
    const without = { ...measured, memory: memory.slice(0, 2), calibration: { ...calibration, ...nothing } }
    expect(constantsOf(without)).to.deep.equal(constantsOf(measured))
  })
})

describe('a simulated shard', () => {
  const load = {
    keys: 200,
    itemsPerSecond: 400,
    itemBytes: 1_024,
    policy: defaultPolicy,
    rampMs: 15_000,
    warmMs: 45_000,
    measureMs: 60_000,
  }

  it('loses nothing, is never late, and keeps as many groups open as triggers and traffic say', () => {
    const figures = simulateShard(load, seededFractions(1))
    expect(figures.items).to.be.within(23_000, 25_000)
    expect(figures.lateMs).to.equal(0)
    // Two items a second and key: no group idles 5 s, so each goes after 15 s or at 50 items.
    expect(figures.items / figures.batches).to.be.within(29, 33)
    expect(figures.openGroups).to.be.within(180, 200)
  })

  it('is the same again from the same seed', () => {
    const run = () => simulateShard({ ...load, warmMs: 1_000, measureMs: 5_000 }, seededFractions(7))
    expect(run()).to.deep.equal(run())
  })
})
