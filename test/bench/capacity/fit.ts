/** Constants of the model from measured points: least squares of relative errors, nothing below zero. */
import { type Constants, type Costs, cpuUs, openMs, packItems, ROLES, type Role } from './model.ts'

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

/** By relative errors of what joins the first item. */
export function packMsOf(points: readonly Point[]): number {
  let [over, under] = [0, 0]
  for (const { itemsPerSecond, shards, packItems } of points) {
    const slope = itemsPerSecond / shards / 1_000 / packItems
    over += slope * (1 - 1 / packItems)
    under += slope ** 2
  }
  return over / under
}

/** What three brokers with three copies take ÷ what one would take for the same packs, both but for what each broker takes anyway. */
export function replicationOf(three: Point, costs: Costs): number {
  return (three.cpuUs.NATS - 3 * costs.second * three.secondsAnItem) / cpuUs(costs, three)
}

/**
 * Predicted over measured: CPU of an item, by role and of all together, and items of a pack. Items of a batch are the
 * traffic's and its windows', so they are given.
 */
export function errorsOf(point: Point, fitted: Fitted): Record<Role | 'all' | 'pack', number> {
  const { shards, secondsAnItem, batchItems } = point
  const items = packItems(point.itemsPerSecond / shards, openMs(shards, fitted.packMs, 0))
  const predicted = (role: Role) => {
    const costs = fitted.costs[role]
    const anyway = (costs.second + shards * costs.shard) * secondsAnItem
    return cpuUs(costs, { packItems: items, batchItems }) + anyway
  }
  const sum = (of: (role: Role) => number) => ROLES.reduce((all, role) => all + of(role), 0)
  const each = ROLES.map((role) => [role, predicted(role) / point.cpuUs[role]])
  return {
    ...(Object.fromEntries(each) as Record<Role, number>),
    all: sum(predicted) / sum((role) => point.cpuUs[role]),
    pack: items / point.packItems,
  }
}
