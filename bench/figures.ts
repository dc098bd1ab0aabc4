/** Quantiles, medians and tables of measured values, and the order in which they are taken. */

/** Nearest rank; NaN without values. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.floor(q * (sorted.length - 1))] ?? Number.NaN
}

/** The mean of the two in the middle of an even number. */
export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort()
  const half = sorted.length / 2
  return (sorted[Math.ceil(half) - 1]! + sorted[Math.floor(half)]!) / 2
}

/** `median (least–most)`; one value alone. */
export function spread(values: readonly number[], digits: number): string {
  if (values.length === 1) return values[0]!.toFixed(digits)
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return `${median(values).toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`
}

/**
 * `median (from–to)`: the true median lies between with 95 % confidence, whatever the distribution (order
 * statistics). At least 6 values.
 */
export function confidence(values: readonly number[], digits: number): string {
  const sorted = Float64Array.from(values).sort()
  const reach = 0.98 * Math.sqrt(sorted.length)
  const low = sorted[Math.max(0, Math.floor(sorted.length / 2 - reach))]!
  const high = sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length / 2 + reach))]!
  return `${median(values).toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`
}

/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** All of them in a circle, so that each time another one is first. */
export function inTurn<T>(all: readonly T[], round: number): T[] {
  const first = round % all.length
  return [...all.slice(first), ...all.slice(0, first)]
}
