/** Reads Prometheus' text format, as far as tests ask. */

/** Sum of all samples of `name` that carry `labels` (more labels are allowed); 0 when there is none. */
export function readMetrics(text: string, name: string, labels: Record<string, string> = {}): number {
  let sum = 0
  for (const line of text.split('\n')) {
    const [, sample, labelText = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line) ?? []
    if (sample !== name) continue
    const wanted = Object.entries(labels).map(([label, of]) => `${label}="${of}"`)
    if (wanted.every((pair) => labelText.split(',').includes(pair))) sum += Number(value)
  }
  return sum
}
