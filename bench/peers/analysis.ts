/** What became of the items of a round: made from what the generator sent and what the sink got. Pure. */
import { quantile } from '../figures.ts'
import type { Recorded } from '../load/recorded.ts'
import type { Batches } from '../load/sink.ts'

/** Triggers of a batch, ms and items. */
export interface Window {
  idleTimeoutMs: number
  maxWaitFromFirstMs: number
  maxItems: number
}

export interface Outcome {
  accepted: number
  failed: number
  /** 202 a second, after the warm-up. */
  acceptedPerSecond: number
  /** From the time at which an item was due to its 202: median, 99 % and 99.9 %. */
  ackMs: [number, number, number]
  delivered: number
  /** From the first item sent to the last that arrived. */
  deliveredPerSecond: number
  batches: number
  meanBatch: number
  /** Accepted, and never arrived. */
  lost: number
  /** Arrivals of an item after its first. */
  duplicates: number
  /** Items that arrived before an item of their key that had its 202 before they were sent. */
  inversions: number
  /** Of batches, ms: arrival after `dueAt`; median and 99 %. Below 0: before a trigger held. */
  lateMs: [number, number]
}

/** `warmMs`: items acknowledged in the first so many ms count for neither rate nor latency. */
export function outcomeOf(sent: Recorded, arrived: Batches, window: Window, warmMs: number): Outcome {
  const { seen, order, items, batches, lastAt, lateMs } = deliveries(sent, arrived, window)
  return {
    ...acceptance(sent, warmMs),
    batches,
    lateMs,
    delivered: order.length,
    deliveredPerSecond: (order.length / (lastAt - sent.sentAt[0]!)) * 1_000,
    meanBatch: items / batches,
    lost: sent.ackedAt.filter((at, n) => !Number.isNaN(at) && !seen[n]).length,
    duplicates: items - order.length,
    inversions: inversions(sent, order),
  }
}

/**
 * The first moment at which a trigger held for the oldest items of a batch, from the times of their 202, in any
 * order: the item that made it full, the first gap above the idle time, or the longest wait.
 */
export function dueAt(ackedAt: readonly number[], window: Window): number {
  const { idleTimeoutMs, maxWaitFromFirstMs, maxItems } = window
  const times = ackedAt.toSorted((a, b) => a - b)
  // Nothing came after the last one, so behind it there is such a gap in any case.
  const gapAfter = times.findIndex((at, n) => !(times[n + 1]! - at <= idleTimeoutMs))
  const full = times[maxItems - 1] ?? Number.POSITIVE_INFINITY
  return Math.min(times[gapAfter]! + idleTimeoutMs, times[0]! + maxWaitFromFirstMs, full)
}

/** `order`: places of the items as they arrived first. */
export function inversions({ keys, sentAt, ackedAt }: Recorded, order: readonly number[]): number {
  /** By key: the earliest 202 among what arrived later. */
  const oldest = new Map<number, number>()
  let count = 0
  for (const n of order.toReversed()) {
    const key = keys[n]!
    const least = oldest.get(key) ?? Number.POSITIVE_INFINITY
    if (least < sentAt[n]!) count++
    // An item that was delivered though nobody was told 202 was not there for anybody to wait for.
    if (ackedAt[n]! < least) oldest.set(key, ackedAt[n]!)
  }
  return count
}

function acceptance({ dueAt, sentAt, ackedAt }: Recorded, warmMs: number) {
  const from = (sentAt[0] ?? 0) + warmMs
  const ackMs: number[] = []
  let [accepted, last] = [0, from]
  for (const [n, at] of ackedAt.entries()) {
    if (Number.isNaN(at)) continue
    accepted++
    if (at < from) continue
    ackMs.push(at - dueAt[n]!)
    last = Math.max(last, at)
  }
  const quantiles = [0.5, 0.99, 0.999].map((q) => quantile(ackMs, q)) as [number, number, number]
  return {
    accepted,
    failed: ackedAt.length - accepted,
    acceptedPerSecond: (ackMs.length / (last - from)) * 1_000,
    ackMs: quantiles,
  }
}

/** Items that this round has not sent are left out: they came late from an earlier one. */
function deliveries(sent: Recorded, { at, sizes, ids }: Batches, window: Window) {
  const seen = new Uint8Array(sent.keys.length)
  const order: number[] = []
  const late: number[] = []
  let [items, batches, lastAt, from] = [0, 0, Number.NaN, 0]
  for (const [request, size] of sizes.entries()) {
    const places = placesOf(sent, ids.subarray(from, from + size))
    from += size
    if (places.length === 0) continue
    batches++
    items += places.length
    lastAt = at[request]!
    const fresh = [...new Set(places)].filter((n) => !seen[n])
    for (const n of fresh) seen[n] = 1
    order.push(...fresh)
    const times = fresh.length > 0 ? acknowledgedAt(sent, places) : []
    if (times.length > 0) late.push(lastAt - dueAt(times, window))
  }
  const [p50 = Number.NaN, p99 = Number.NaN] = [0.5, 0.99].map((q) => quantile(late, q))
  return { seen, order, items, batches, lastAt, lateMs: [p50, p99] as [number, number] }
}

function placesOf({ firstId, keys }: Recorded, ids: Uint32Array): number[] {
  return Array.from(ids, (id) => id - firstId).filter((n) => n >= 0 && n < keys.length)
}

function acknowledgedAt({ ackedAt }: Recorded, places: readonly number[]): number[] {
  return places.map((n) => ackedAt[n]!).filter((at) => !Number.isNaN(at))
}
