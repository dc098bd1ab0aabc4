/** What many runs of the fault suite say together, as tables: duplicates by kind of fault, and by row of the matrix. */
import type { ClusterSummary } from './cluster-run.ts'
import type { RowSummary } from './rows.ts'

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

/** The rows that held; Markdown. `title`: of a row. */
export function rowTotalsOf(
  rows: ReadonlyMap<string, RowSummary>,
  title: (row: string) => string | undefined,
): string {
  const lines = [...rows].map(([row, { accepted, duplicates, pauseMs, handOverMs }]) => {
    const again = Object.entries(duplicates).map(([kind, count]) => `${count} (${kind})`)
    return `| ${row} | ${title(row)} | ${accepted} | ${again.join(', ') || '0'} | ${pauseMs} | ${handOverMs || ''} |`
  })
  return [
    '| row | | items | batches sent again | longest time without a 202, ms | seal to seal over a hand-over, ms |',
    '|---|---|---|---|---|---|',
    ...lines,
  ].join('\n')
}

function sumOf(counts: readonly Readonly<Record<string, number>>[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [kind, count] of counts.flatMap(Object.entries<number>))
    sums.set(kind, (sums.get(kind) ?? 0) + count)
  return sums
}
