/** What a list of delivery facts adds to the counters. Pure. */

import { bucketOf, deliveryDurationBounds, timeToFlushBounds } from '../domain/histogram.ts'
import type { DeliveryFact } from '../shard/ports.ts'

/** One buffer and UTC day. */
export interface DaySum {
  bufferUid: string
  /** `YYYY-MM-DD` */
  day: string
  delivered: number
  dead: number
  /** Attempts after the first. */
  retries: number
  itemsDelivered: number
  itemsDead: number
  timeToFlush: number[]
  deliveryDuration: number[]
}

/** One buffer over all days, for `consecutiveDlqCount`. */
export interface BufferSum {
  bufferUid: string
  dead: number
  /** Of these, how many came before the last delivered one; null when none was delivered. */
  deadBeforeDelivered: number | null
}

/** Sorted, so that transactions of several shards lock rows in one order. */
export function sumByDay(facts: readonly DeliveryFact[]): DaySum[] {
  const sums = new Map<string, DaySum>()
  for (const fact of facts) {
    const day = new Date(fact.at).toISOString().slice(0, 10)
    const key = `${fact.bufferUid} ${day}`
    let sum = sums.get(key)
    if (sum === undefined) {
      sum = emptyDay(fact.bufferUid, day)
      sums.set(key, sum)
    }
    addFact(sum, fact)
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)
}

export function sumByBuffer(facts: readonly DeliveryFact[]): BufferSum[] {
  const sums = new Map<string, BufferSum>()
  for (const { bufferUid, outcome } of facts) {
    let sum = sums.get(bufferUid)
    if (sum === undefined) {
      sum = { bufferUid, dead: 0, deadBeforeDelivered: null }
      sums.set(bufferUid, sum)
    }
    if (outcome === 'dead') sum.dead += 1
    else sum.deadBeforeDelivered = sum.dead
  }
  return [...sums.values()]
}

function emptyDay(bufferUid: string, day: string): DaySum {
  return {
    bufferUid,
    day,
    delivered: 0,
    dead: 0,
    retries: 0,
    itemsDelivered: 0,
    itemsDead: 0,
    timeToFlush: timeToFlushBounds.map(() => 0),
    deliveryDuration: deliveryDurationBounds.map(() => 0),
  }
}

function addFact(sum: DaySum, fact: DeliveryFact): void {
  sum.retries += fact.attempts - 1
  if (fact.outcome === 'dead') {
    sum.dead += 1
    sum.itemsDead += fact.items
  } else {
    sum.delivered += 1
    sum.itemsDelivered += fact.items
  }
  count(sum.timeToFlush, bucketOf(timeToFlushBounds, fact.timeToFlushMs))
  count(sum.deliveryDuration, bucketOf(deliveryDurationBounds, fact.durationMs))
}

function count(counts: number[], bucket: number): void {
  counts[bucket] = (counts[bucket] ?? 0) + 1
}
