/** What the runs say together, as the table of test/power/README.md. */
import { POWER_KINDS } from './kinds.ts'
import type { PowerSummary } from './power-run.ts'

const HEAD = [
  '| kind | | cuts | items | sectors torn | cuts that took a tail | repairs cut | items lost, oldest | longest time to notice, s | down, s | to heal, s | batches sent again |',
  '|---|---|---|---|---|---|---|---|---|---|---|---|',
]

/** Markdown. Times are the longest of a kind. */
export function powerTable(held: ReadonlyMap<string, PowerSummary>): string {
  return [...HEAD, ...[...held].map(([kind, summary]) => row(kind, summary))].join('\n')
}

function row(kind: string, summary: PowerSummary): string {
  const { cuts, accepted, torn, unflushed, lost, oldestLostMs, noticeMs, downMs, healMs, duplicates } =
    summary
  const cells = [
    kind,
    POWER_KINDS[kind]!.title,
    cuts,
    accepted,
    unflushed === 0 ? '' : `${torn} of ${unflushed}`,
    summary.shortened,
    summary.repairsCut,
    lost === 0 ? 0 : `${lost}, ${seconds([oldestLostMs])} s`,
    noticeMs.length === 0 ? '' : seconds(noticeMs),
    seconds(downMs),
    seconds(healMs),
    duplicates,
  ]
  return `| ${cells.join(' | ')} |`
}

function seconds(times: readonly number[]): string {
  return (Math.max(...times) / 1_000).toFixed(1)
}
