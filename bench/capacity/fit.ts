/** Constants of the model from measured points: least squares of relative errors, nothing below zero. */
import type { MemoryReading } from '../cluster-memory.ts'
import {
  actorBytes,
  type Constants,
  type Costs,
  cpuUs,
  type Memory,
  openMs,
  packItems,
  type Replicated,
  ROLES,
  type Role,
} from './model.ts'

export interface Point {
  readonly shards: number
  readonly keys: number
  readonly itemsPerSecond: number
  /** For which CPU was counted, until the last delivery, ÷ items. */
  readonly secondsAnItem: number
  readonly packItems: number
  readonly batchItems: number
  /** CPU an item, µs. */
  readonly cpuUs: Readonly<Record<Role, number>>
}

/** What a role's CPU can depend on. */
const PARTS: Readonly<Record<Role, readonly (keyof Costs)[]>> = {
  ingresses: ['item', 'pack', 'second'],
  actors: ['item', 'pack', 'batch', 'second'],
  NATS: ['item', 'pack', 'batch', 'second'],
  Postgres: ['item', 'second', 'shard'],
}
const SWEEPS = 2_000
const MOST_PACK_MS = 20
const MOST_TIMES = 20

/** What follows from points with one broker. */
export interface Fitted {
  readonly costs: Constants['costs']
  /** With one copy of each message. */
  readonly packMs: number
}

export function leastSquares(points: readonly Point[]): Fitted {
  const costs = Object.fromEntries(ROLES.map((role) => [role, costsOf(role, points)]))
  return { costs: costs as Record<Role, Costs>, packMs: packMsOf(points) }
}

function costsOf(role: Role, points: readonly Point[]): Costs {
  const weights: Record<keyof Costs, number> = { item: 0, pack: 0, batch: 0, second: 0, shard: 0 }
  const rows = points.map((point) => {
    const measured = point.cpuUs[role]
    return {
      item: 1 / measured,
      pack: 1 / point.packItems / measured,
      batch: 1 / point.batchItems / measured,
      second: point.secondsAnItem / measured,
      shard: (point.shards * point.secondsAnItem) / measured,
    }
  })
  // Coordinate descent: each weight in its turn to where it is best, but not below zero.
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const part of PARTS[role]) {
      let [over, under] = [0, 0]
      for (const row of rows) {
        const others = PARTS[role].reduce(
          (sum, each) => sum + (each === part ? 0 : weights[each] * row[each]),
          0,
        )
        over += row[part] * (1 - others)
        under += row[part] ** 2
      }
      weights[part] = Math.max(0, over / under)
    }
  }
  return weights
}

/** Least relative errors, to 0.01 ms. */
export function packMsOf(points: readonly Point[]): number {
  const errorOf = (packMs: number) =>
    points.reduce((sum, point) => {
      const items = packItems(point.itemsPerSecond / point.shards, openMs(point.shards, packMs, 0))
      return sum + (items / point.packItems - 1) ** 2
    }, 0)
  const tried = Array.from({ length: MOST_PACK_MS * 100 }, (_, n) => (n + 1) / 100)
  return tried.reduce((best, packMs) => (errorOf(packMs) < errorOf(best) ? packMs : best))
}

/**
 * Of points with three brokers, beside what one would take for the same packs: least squares of relative errors. Three copies are
 * three times the work of one at least; without that bound, points in which packs become larger as items become more leave
 * everything to the seconds, and the packs cost less than nothing.
 */
export function replicatedOf(points: readonly Point[], costs: Costs): Replicated {
  const rows = points.map((point) => {
    const measured = point.cpuUs.NATS
    return { moving: cpuUs(costs, point) / measured, second: (3 * point.secondsAnItem) / measured }
  })
  const secondOf = (times: number) => {
    const over = rows.reduce((sum, { moving, second }) => sum + second * (1 - times * moving), 0)
    return Math.max(0, over / rows.reduce((sum, { second }) => sum + second ** 2, 0))
  }
  const errorOf = (times: number) =>
    rows.reduce((sum, row) => sum + (times * row.moving + secondOf(times) * row.second - 1) ** 2, 0)
  const tried = Array.from({ length: MOST_TIMES * 10 }, (_, n) => 3 + n / 10)
  const times = tried.reduce((best, each) => (errorOf(each) < errorOf(best) ? each : best))
  return { times, second: secondOf(times) }
}

/** How the brokers of a point differ from a single one that syncs nothing. */
export interface Brokers extends Replicated {
  readonly packMs: number
  readonly count: number
}

/**
 * Predicted over measured: CPU of an item, by role and of all together, and items of a pack. Items of a batch are the
 * traffic's and its windows', so they are given.
 */
export function errorsOf(
  point: Point,
  { costs, packMs }: Fitted,
  brokers: Brokers = { packMs, times: 1, second: costs.NATS.second, count: 1 },
): Record<Role | 'all' | 'pack', number> {
  const { shards, secondsAnItem, batchItems } = point
  const items = packItems(point.itemsPerSecond / shards, openMs(shards, brokers.packMs, 0))
  const predicted = (role: Role) => {
    const { times, second, count } = role === 'NATS' ? brokers : { ...costs[role], times: 1, count: 1 }
    const anyway = (count * second + shards * costs[role].shard) * secondsAnItem
    return times * cpuUs(costs[role], { packItems: items, batchItems }) + anyway
  }
  const sum = (of: (role: Role) => number) => ROLES.reduce((all, role) => all + of(role), 0)
  const each = ROLES.map((role) => [role, predicted(role) / point.cpuUs[role]])
  return {
    ...(Object.fromEntries(each) as Record<Role, number>),
    all: sum(predicted) / sum((role) => point.cpuUs[role]),
    pack: items / point.packItems,
  }
}

/** A process, and a group of it, from its first and second reading. */
export function memoryOf([idle, some]: readonly MemoryReading[]): Memory {
  const beside = ({ rss, payloads }: MemoryReading) => rss - payloads
  const group = (beside(some!) - beside(idle!)) / (some!.groups - idle!.groups)
  return { process: beside(idle!) - idle!.groups * group, group }
}

/** Predicted over measured RSS, bytes of a payload with its share of a pack as in the second reading. */
export function memoryError(reading: MemoryReading, [idle, some]: readonly MemoryReading[]): number {
  const payload = some!.payloads / some!.groups
  return actorBytes(memoryOf([idle!, some!]), reading.groups, payload) / reading.rss
}
