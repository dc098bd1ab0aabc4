/** Histograms of deliveries (docs/reference/analytics.md): upper bounds in ms, the last open. */

/** From the storage of a batch's first item to its seal. */
export const timeToFlushBounds = [
  100,
  250,
  500,
  1_000,
  2_500,
  5_000,
  10_000,
  15_000,
  30_000,
  60_000,
  300_000,
  Number.POSITIVE_INFINITY,
] as const

/** Of a batch's last attempt. */
export const deliveryDurationBounds = [
  10,
  25,
  50,
  100,
  250,
  500,
  1_000,
  2_500,
  5_000,
  10_000,
  Number.POSITIVE_INFINITY,
] as const

/** Index of the first bound that is not below `ms`. */
export function bucketOf(bounds: readonly number[], ms: number): number {
  const index = bounds.findIndex((bound) => ms <= bound)
  return index === -1 ? bounds.length - 1 : index
}

/** Counts by upper bound as text, each value in one bucket: `{"100": 3, …, "+Inf": 0}`. */
export function histogramOf(bounds: readonly number[], counts: readonly number[]): Record<string, number> {
  return Object.fromEntries(
    bounds.map((bound, index) => [Number.isFinite(bound) ? `${bound}` : '+Inf', counts[index] ?? 0]),
  )
}
