/**
 * The cluster fault suite for as long as one likes (`npm run test:faults`):
 *
 *   npm run test:faults -- --seed 7 --runs 200     random faults, seeds 7, 8, 9 …
 *   npm run test:faults -- --rows 8,9,25           rows of the fault matrix by number; `all` for each that is here
 *   npm run test:faults -- --kinds kill,freeze     only these faults; --steps and --items: how much of them
 *
 * Without arguments: every row, then 20 random runs. A line a run, and at the end the duplicates of all rows, and those of
 * all random runs by kind of fault; exit code 0 only when every promise held in all of them. A failure names its seed and the file
 * with its history, and the next run follows.
 */
import { parseArgs } from 'node:util'

import { killServers, stopServers } from '../support/servers.ts'
import { type ClusterSummary, clusterRun } from './cluster-run.ts'
import { KINDS, type Kind } from './plan.ts'
import { ROWS, type RowSummary, runRow } from './rows.ts'
import { rowTotalsOf, totalsOf } from './totals.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    runs: { type: 'string' },
    rows: { type: 'string' },
    kinds: { type: 'string' },
    steps: { type: 'string', default: '5' },
    items: { type: 'string', default: '5000' },
    brokers: { type: 'string', default: '1' },
  },
})
const [seed, steps, items, brokers] = [values.seed, values.steps, values.items, values.brokers].map(
  Number,
) as [number, number, number, number]
const rows = chosen('rows', values.rows ?? (values.runs === undefined ? 'all' : ''), Object.keys(ROWS))
const kinds = chosen('kinds', values.kinds ?? 'all', KINDS) as Kind[]
const runs = Number(values.runs ?? (values.rows === undefined ? 20 : 0))

process.on('exit', killServers)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

let failed = 0
const held: ClusterSummary[] = []
const heldRows = new Map<string, RowSummary>()
for (const row of rows)
  await report(`row ${row}, seed ${seed}`, async () => {
    const summary = await runRow(row, seed)
    heldRows.set(row, summary)
    return summary
  })
for (let run = 0; run < runs; run++)
  await report(`seed ${seed + run}`, async () => {
    const summary = await clusterRun({ seed: seed + run, steps, items, brokers, kinds })
    held.push(summary)
    return summary
  })
if (heldRows.size > 0) process.stdout.write(`${rowTotalsOf(heldRows, (row) => ROWS[row]?.title)}\n`)
if (held.length > 0) process.stdout.write(`${totalsOf(held)}\n`)
process.stdout.write(`${rows.length + runs - failed} held, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1
await stopServers()
process.exit()

/** `list`: names separated by commas, or `all`; ends the process for one that is unknown. */
function chosen(option: string, list: string, known: readonly string[]): string[] {
  const names = list === 'all' ? [...known] : list.split(',').filter((name) => name !== '')
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return names
  process.stderr.write(`--${option}: there is no ${unknown}; there are ${known.join(', ')}\n`)
  process.exit(2)
}

async function report(name: string, run: () => Promise<object>): Promise<void> {
  const began = performance.now()
  const result = await run().then(
    (summary) => `held ${JSON.stringify(summary)}`,
    (error: unknown) => {
      failed++
      return `FAILED ${error instanceof Error ? error.stack : error}`
    },
  )
  process.stdout.write(`${name}, ${Math.round((performance.now() - began) / 1000)} s: ${result}\n`)
}
