/**
 * An installation of any size: its shards one after the other, for nothing joins them but the nodes that they share, and
 * those by the real planner, after nodes have come and gone.
 */
import { placeShards } from '../../internal/shard/ownership/placement.ts'
import { carriedOut, idle } from '../../test/shard/memberships.ts'
import { seededFractions } from '../../test/support/seeded.ts'
import { type ShardFigures, type ShardLoad, simulateShard } from './shard-simulation.ts'

/** `keys` and `itemsPerSecond` are those of all shards. */
export interface Fleet extends ShardLoad {
  readonly shards: number
  /** That run shards. */
  readonly nodes: number
}

/** Over all shards or all nodes. */
export interface Spread {
  mean: number
  most: number
}

export interface FleetFigures {
  itemsPerSecond: number
  batchesPerSecond: number
  /** Items of a batch. */
  batchItems: number
  openGroups: number
  /** Seal asked for minus due, the greatest, ms. */
  lateMs: number
  /** An item. */
  wakes: number
  armed: number
  /** Seals within one ms of one shard, the most. */
  mostAtOnce: number
  groupsOfShard: Spread
  groupsOfNode: Spread
  itemsOfNode: Spread
  /** Real CPU of an item with its groups, timers and all of the simulation, µs. */
  realUs: number
  /** Of the planner, for one change of members, real ms. */
  planMs: number
}

export function simulateFleet(fleet: Fleet, seed: number): FleetFigures {
  const { shards, keys, itemsPerSecond, rampMs, warmMs, measureMs } = fleet
  const load = { ...fleet, keys: Math.round(keys / shards), itemsPerSecond: itemsPerSecond / shards }
  const before = process.cpuUsage()
  const each = Array.from({ length: shards }, (_, shard) =>
    simulateShard(load, seededFractions(seed * 1_000_003 + shard)),
  )
  const { user, system } = process.cpuUsage(before)
  const { byNode, planMs } = placed(each, fleet)
  const sum = (of: (figures: ShardFigures) => number) => each.reduce((all, figures) => all + of(figures), 0)
  const most = (of: (figures: ShardFigures) => number) => Math.max(...each.map(of))
  const items = sum((figures) => figures.items)
  const batches = sum((figures) => figures.batches)
  const perSecond = (count: number) => (count * 1_000) / measureMs
  const ofNode = (of: (figures: ShardFigures) => number) =>
    spreadOf(byNode.map((own) => own.reduce((all, figures) => all + of(figures), 0)))
  return {
    itemsPerSecond: perSecond(items),
    batchesPerSecond: perSecond(batches),
    batchItems: items / batches,
    openGroups: sum((figures) => figures.openGroups),
    lateMs: most((figures) => figures.lateMs),
    wakes: sum((figures) => figures.wakes) / items,
    armed: sum((figures) => figures.armed) / items,
    mostAtOnce: most((figures) => figures.mostAtOnce),
    groupsOfShard: spreadOf(each.map(({ openGroups }) => openGroups)),
    groupsOfNode: ofNode((figures) => figures.openGroups),
    itemsOfNode: ofNode((figures) => perSecond(figures.items)),
    // Half of the arrivals of the ramp are of keys that have not begun.
    realUs: (user + system) / ((items * (warmMs + measureMs - rampMs / 2)) / measureMs),
    planMs,
  }
}

/** Figures of the shards by node, after one of the nodes was replaced by another. */
function placed(each: readonly ShardFigures[], { shards, nodes }: Fleet) {
  const boots = Array.from({ length: nodes }, (_, node) => `node-${node}`)
  const before = placeShards(shards, idle(boots))
  const startedAt = performance.now()
  const plan = placeShards(shards, carriedOut(before, [...boots.slice(1), 'joiner']))
  const planMs = performance.now() - startedAt
  const byNode = new Map<string, ShardFigures[]>()
  for (const [shard, boot] of plan.entries()) {
    const own = byNode.get(boot!)
    if (own) own.push(each[shard]!)
    else byNode.set(boot!, [each[shard]!])
  }
  return { byNode: [...byNode.values()], planMs }
}

function spreadOf(values: readonly number[]): Spread {
  return { mean: values.reduce((all, value) => all + value, 0) / values.length, most: Math.max(...values) }
}
