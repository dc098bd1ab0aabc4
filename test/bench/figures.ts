/** Quantiles, medians and tables of measured values. */

/** Nearest rank; NaN without values. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.floor(q * (sorted.length - 1))] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** `median (least–most)`. */
export function spread(values: readonly number[], digits: number): string {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return `${median(values).toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`
}

/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
