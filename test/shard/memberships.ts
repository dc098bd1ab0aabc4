/** Members and what they run, for the tests of placement. */
import fc from 'fast-check'
import type { PlacedMember } from '../../internal/shard/ownership/placement.ts'

/** A plan: index = shard, value = boot. */
export type Plan = readonly (string | null)[]

/** What the members of these boots run once they have carried out `plan`. */
export function carriedOut(plan: Plan, boots: readonly string[]): PlacedMember[] {
  const running = new Map<string | null, number[]>(boots.map((boot) => [boot, []]))
  for (const [shard, boot] of plan.entries()) running.get(boot)?.push(shard)
  return boots.map((boot) => ({ boot, shards: running.get(boot)! }))
}

/** Members that have just started. */
export function idle(boots: readonly string[]): PlacedMember[] {
  return boots.map((boot) => ({ boot, shards: [] }))
}

/** Shards that have another place in `after` than in `before`. */
export function movedShards(before: Plan, after: Plan): number[] {
  return before.flatMap((boot, shard) => (boot === after[shard] ? [] : [shard]))
}

/** Number of shards of each member. */
export function loadsOf(plan: Plan, boots: readonly string[]): number[] {
  return carriedOut(plan, boots).map(({ shards }) => shards.length)
}

export const shardCount = fc.integer({ min: 0, max: 120 })
export const someBoots = fc.uniqueArray(fc.oneof(fc.uuid(), fc.string()), { minLength: 1, maxLength: 12 })
