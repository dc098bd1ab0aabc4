/**
 * The simulation for as long as one likes: `npm run test:sim -- --seed 7 --runs 5000`
 *
 * `--seed` alone runs that one seed; `--mutant <name>` leaves a rule of the core out (`mutants.ts`). The first line
 * of a failing seed names it; the same seed replays exactly. Exit code 0: every promise held.
 */
import { parseArgs } from 'node:util'
import { MUTANTS } from './mutants.ts'
import { loadMutated } from './mutation.ts'
import { run } from './run.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    runs: { type: 'string' },
    mutant: { type: 'string' },
  },
})
const first = Number(values.seed ?? Date.now() % 1_000_000_000)
const runs = Number(values.runs ?? (values.seed === undefined ? 2_000 : 1))
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(runs) || runs < 1)
  throw new Error('--seed and --runs are whole numbers')
const runOne = values.mutant === undefined ? run : await runOf(values.mutant)

process.stdout.write(`seeds ${first} to ${first + runs - 1}\n`)
const began = performance.now()
const total = { failed: 0, events: 0, sent: 0, dead: 0, duplicates: 0, owners: 0, commits: 0 }
for (let seed = first; seed < first + runs; seed++) {
  const { errors, hash, ...figures } = await runOne(seed)
  for (const key of ['events', 'sent', 'dead', 'duplicates', 'owners', 'commits'] as const)
    total[key] += figures[key]
  if (errors.length > 0) {
    total.failed++
    process.stdout.write(
      `seed ${seed} failed:\n${errors
        .slice(0, 10)
        .map((error) => `  ${error}\n`)
        .join('')}`,
    )
  }
  if (runs === 1) process.stdout.write(`seed ${seed}: history ${hash}\n`)
}
const minutes = (performance.now() - began) / 60_000
const cpuMinutes = process.cpuUsage().user / 60e6
process.stdout.write(`${JSON.stringify(total)}\n`)
process.stdout.write(
  `${runs} seeds, ${total.failed} failed, ${Math.round(runs / minutes)} a minute, ${Math.round(runs / cpuMinutes)} a minute of CPU\n`,
)
process.exitCode = total.failed === 0 ? 0 : 1

async function runOf(name: string): Promise<typeof run> {
  const mutant = MUTANTS.find((each) => each.name === name)
  if (!mutant) throw new Error(`mutants: ${MUTANTS.map((each) => each.name).join(', ')}`)
  return (await loadMutated(mutant)).run
}
