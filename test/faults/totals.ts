/** What many runs of the fault suite say together: duplicates by kind of fault, as a table. */
import type { ClusterSummary } from './cluster-run.ts'

/** The runs that held; Markdown. */
export function totalsOf(runs: readonly ClusterSummary[]): string {
  const times = sumOf(runs.map((run) => run.times))
  const duplicates = sumOf(runs.map((run) => run.duplicates))
  const kinds = [...new Set([...times.keys(), ...duplicates.keys()])].sort()
  const total = (of: (run: ClusterSummary) => number) => runs.reduce((sum, run) => sum + of(run), 0)
  const heals = runs.flatMap(({ healMs }) => healMs)
  return [
    '| fault | times | batches sent again |',
    '|---|---|---|',
    ...kinds.map((kind) => `| ${kind} | ${times.get(kind) ?? 0} | ${duplicates.get(kind) ?? 0} |`),
    '',
    `${runs.length} runs (seeds ${runs.map(({ seed }) => seed).join(', ')}), ${total(({ accepted }) => accepted)} items,` +
      ` ${total(({ deliveries }) => deliveries)} deliveries, ${total(({ dead }) => dead)} dead letters;` +
      ` longest time to heal ${Math.max(0, ...heals)} ms`,
  ].join('\n')
}

function sumOf(counts: readonly Readonly<Record<string, number>>[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [kind, count] of counts.flatMap(Object.entries<number>))
    sums.set(kind, (sums.get(kind) ?? 0) + count)
  return sums
}
