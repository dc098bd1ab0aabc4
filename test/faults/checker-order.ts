/** Batches of a group by their versions, and items as they were stored. */
import { versionOf } from './batch-key.ts'
import type { Evidence, Violation } from './evidence.ts'
import type { Delivery } from './history.ts'

export function checkOrder(evidence: Evidence): Violation[] {
  return [...evidence.deliveriesOfGroups.values()].flatMap((deliveries) => [
    ...descents(deliveries, versionOf)
      .filter((pair) => !isLateRepetition(evidence, ...pair))
      .map(([, { key }]) => ({ rule: 'batch-order', detail: key })),
    ...itemDescents(evidence, deliveries),
  ])
}

/** The order of first arrivals holds always. */
function isLateRepetition(evidence: Evidence, later: Delivery, delivery: Delivery): boolean {
  const [first] = evidence.attempts.get(delivery.key)!
  if (first === delivery) return false
  return evidence.heldBack(delivery, later.at) || evidence.wasGivenUp(delivery)
}

function itemDescents(evidence: Evidence, deliveries: readonly Delivery[]): Violation[] {
  const firsts = [...new Map(deliveries.toReversed().map((each) => [each.key, each])).values()].reverse()
  const items = firsts
    .toSorted((a, b) => versionOf(a) - versionOf(b))
    .flatMap(({ key, items }) => items.map(({ n }) => ({ n, key })))
    // Only what was answered before the next was sent has a known place in the log.
    .filter(({ n }) => evidence.sent(n)?.answer?.status === 202)
  return descents(items, ({ n }) => n).map(([, detail]) => ({ rule: 'item-order', detail }))
}

/** Neighbours of which the second ranks lower. */
function descents<T>(values: readonly T[], rank: (value: T) => number): [T, T][] {
  return values
    .slice(1)
    .map((value, index): [T, T] => [values[index]!, value])
    .filter(([before, value]) => rank(value) < rank(before))
}
