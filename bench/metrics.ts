/** Histograms and gauges of the service's own, read from its ops port. */
import { readMetrics } from '../test/support/metrics.ts'

export interface Buckets {
  /** Upper bounds ascending, `Infinity` last. */
  readonly bounds: number[]
  /** Values up to each bound. */
  readonly counts: number[]
}

export async function histogramOf(opsUrl: string, name: string): Promise<Buckets> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text()
  const found = text.matchAll(new RegExp(`^${name}_bucket\\{.*?le="([^"]+)"[^}]*\\} (\\d+)`, 'gm'))
  const buckets: Buckets = { bounds: [], counts: [] }
  for (const [, bound, count] of found) {
    buckets.bounds.push(bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound))
    buckets.counts.push(Number(count))
  }
  return buckets
}

/** Sum over all shards. */
export async function gaugeOf(opsUrl: string, name: string): Promise<number> {
  return readMetrics(await (await fetch(`${opsUrl}/metrics`)).text(), name)
}

/** What came between two readings; an empty first one counts as zeros. */
export function between(before: Buckets, after: Buckets): Buckets {
  return { ...after, counts: after.counts.map((count, i) => count - (before.counts[i] ?? 0)) }
}

export function plus(a: Buckets, b: Buckets): Buckets {
  return { ...a, counts: a.counts.map((count, i) => count + b.counts[i]!) }
}

/** `<= bound` of the bucket that holds the quantile. */
export function bucketOf({ bounds, counts }: Buckets, q: number): string {
  const total = counts.at(-1) ?? 0
  const index = counts.findIndex((count) => count >= q * total)
  return total === 0 ? 'none' : `≤ ${bounds[index]}`
}

/** Share of the values up to `bound`, which must be a bound of the histogram. */
export function shareUpTo({ bounds, counts }: Buckets, bound: number): number {
  return counts[bounds.indexOf(bound)]! / counts.at(-1)!
}
