/**
 * The simulation for as long as one likes: `npm run test:sim -- --seed 7 --runs 5000`
 *
 * `--seed` alone runs that one seed; `--minutes 4` runs as many as there is time for; `--fresh` begins with seeds that belong to
 * this commit alone; `--power`: all servers of the broker lose power now and then; `--tight`: each journal has little room;
 * `--mutant <name>` leaves a rule of the core out (`mutants.ts`). The first line of a failing seed names it; the
 * same seed replays exactly. The last line counts seeds. Exit code 0: every promise held.
 */
import { execFileSync } from 'node:child_process'

import { parseArgs } from 'node:util'
import { MUTANTS } from './mutants.ts'
import { loadMutated } from './mutation.ts'
import { run } from './run.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    runs: { type: 'string' },
    minutes: { type: 'string' },
    fresh: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    power: { type: 'boolean', default: false },
    tight: { type: 'boolean', default: false },
  },
})
/** Seeds of one commit: more than any run of it takes. */
const SEEDS_OF_A_COMMIT = 100_000

const first = Number(values.seed ?? (values.fresh ? freshSeed() : Date.now() % 1_000_000_000))
const minutes = Number(values.minutes ?? Number.POSITIVE_INFINITY)
const most = values.minutes === undefined ? (values.seed === undefined ? 2_000 : 1) : SEEDS_OF_A_COMMIT
const runs = Number(values.runs ?? most)
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(runs) || runs < 1)
  throw new Error('--seed and --runs are whole numbers')
if (!(minutes > 0)) throw new Error('--minutes is a number above 0')
const runOne = values.mutant === undefined ? run : await runOf(values.mutant)

process.stdout.write(`seeds from ${first} on\n`)
const began = performance.now()
const FIGURES = ['events', 'sent', 'dead', 'duplicates', 'owners', 'commits'] as const
const FIGURES_OF_POWER = ['powerCuts', 'losses', 'told'] as const
const summed = values.power ? [...FIGURES, ...FIGURES_OF_POWER] : FIGURES
const total: Record<string, number> = { ...Object.fromEntries(summed.map((name) => [name, 0])) }
let ran = 0
let failed = 0
for (let seed = first; seed < first + runs && minutesSince(began) < minutes; seed++, ran++) {
  const { errors, hash, ...figures } = await runOne(seed, { power: values.power, tight: values.tight })
  for (const name of summed) total[name]! += figures[name]
  if (errors.length > 0) {
    failed++

    process.stdout.write(
      `seed ${seed} failed:\n${errors
        .slice(0, 10)
        .map((error) => `  ${error}\n`)
        .join('')}`,
    )
  }
  if (runs === 1) process.stdout.write(`seed ${seed}: history ${hash}\n`)
}
const cpuMinutes = process.cpuUsage().user / 60e6
process.stdout.write(`${JSON.stringify({ failed, ...total })}\n`)
process.stdout.write(
  `${ran} seeds, ${Math.round(ran / minutesSince(began))} a minute, ${Math.round(ran / cpuMinutes)} a minute of CPU\n`,
)
process.stdout.write(`${ran - failed} passed, ${failed} failed, 0 skipped\n`)
process.exitCode = failed === 0 ? 0 : 1

function minutesSince(began: number): number {
  return (performance.now() - began) / 60_000
}

/** The first one that no run of a commit before had. */
function freshSeed(): number {
  const commits = execFileSync('git', ['rev-list', '--count', 'HEAD'], { encoding: 'utf8' })
  return Number(commits) * SEEDS_OF_A_COMMIT
}

async function runOf(name: string): Promise<typeof run> {
  const mutant = MUTANTS.find((each) => each.name === name)
  if (!mutant) throw new Error(`mutants: ${MUTANTS.map((each) => each.name).join(', ')}`)
  return (await loadMutated(mutant)).run
}
