/**
 * `npm run bench`: all figures, or the sections named as arguments, into docs/performance/results.md between their markers.
 * `npm run bench -- baseline FOLDER …` prints how this tree compares to the checkouts in those folders.
 * Only ratios inside one table count: the machine may have other work.
 */
import { killServers, stopServers } from '../test/support/servers.ts'
import { measureAdmin } from './admin.ts'
import { measureBurst } from './burst.ts'
import { measureCapacity } from './capacity/main.ts'
import { measureHandOver } from './cluster-hand-over.ts'
import { measureMemory } from './cluster-memory.ts'
import { measureScaleOut } from './cluster-scale-out.ts'
import { measureTakeOver } from './cluster-take-over.ts'
import { measureChanges } from './config.ts'
import { measureHeap } from './heap.ts'
import { compareBaseline, compareIngest, compareProcesses } from './ingest.ts'
import { measureIsolation } from './isolation.ts'
import { measureLateness, type Numbers } from './lateness.ts'
import { measureMillion } from './million.ts'
import { measureOperator } from './operator.ts'
import { measureSecrets } from './operator-secrets.ts'
import { comparePeers } from './peers.ts'
import { keep, whereNow } from './results.ts'
import { measureStarts } from './start.ts'
import { measureTurns } from './turns.ts'

/** With goals of p99, ms. */
const OPEN_GROUPS: Numbers = [[1_000], [10_000, 10], [100_000, 25]]
const HEAP = { groups: 100_000, rounds: 3 }
const STARTS = 5
const CHANGES = 100
const HELD_ITEMS = 1_000_000
const TURNS = { rounds: 3, finished: 1_500_000, kept: 500_000, openBatches: 10_000, dueItems: 100_000 }
const SCALE_OUT = { rounds: 5, measureMs: 4_000 }
const TAKE_OVER = { liveItems: [1_000, 10_000, 50_000, 200_000], rounds: 3 }
/** 1 MB each is what a Secret may have in all. */
const SECRETS = { buffers: 1_000, secrets: 10_000, bytes: 1_000_000 }
const OPERATOR = { single: 50, many: 1_000, edited: 100, held: 10_000 }
const MEMORY = { groups: 100_000, steps: 3 }

const SECTIONS: Record<string, () => Promise<string>> = {
  'ingest-always': () => compareIngest('always', { hand: 3, floors: 0.75 }),
  'ingest-default': () => compareIngest('2m', { hand: 1.5 }),
  processes: () => compareProcesses('2m', 9),
  admin: () => measureAdmin({ sync: '2m' }),
  lateness: () => measureLateness('always', OPEN_GROUPS),
  burst: () => measureBurst('always'),
  isolation: () => measureIsolation('always'),
  heap: () => measureHeap(HEAP.groups, HEAP.rounds),
  start: () => measureStarts(STARTS),
  config: () => measureChanges(CHANGES),
  million: () => measureMillion(HELD_ITEMS),
  turns: () => measureTurns(TURNS),
  'scale-out': () => measureScaleOut(SCALE_OUT.rounds, SCALE_OUT.measureMs),
  'hand-over': () => measureHandOver(TAKE_OVER.liveItems, TAKE_OVER.rounds),
  'take-over': () => measureTakeOver(TAKE_OVER.liveItems, TAKE_OVER.rounds),
  operator: () => measureOperator(OPERATOR),
  'operator-secrets': () => measureSecrets(SECRETS),
  'groups-memory': () => measureMemory(MEMORY.groups, MEMORY.steps),
}

/** Those that keep what they measure, and write their pages themselves. */
const KEPT: Record<string, () => Promise<void>> = { peers: comparePeers, capacity: measureCapacity }

// A cluster has a listener for each of its processes.
process.setMaxListeners(100)
process.on('exit', killServers)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const [section, ...baselines] = process.argv.slice(2)
if (section === 'baseline') {
  if (baselines.length === 0) throw new Error('baseline wants the folder of another checkout')
  // No figure of the project: it is printed and not kept.
  process.stdout.write(`${whereNow()}\n\n${await compareBaseline(baselines)}\n`)
  await stopServers()
  process.exit()
}
for (const name of namedSections()) {
  try {
    await (KEPT[name] ?? (() => measureSection(name)))()
  } catch (error) {
    // The others still count.
    process.stderr.write(`${name} failed: ${(error as Error).stack}\n`)
    process.exitCode = 1
  }
}
await stopServers()
// Programs of a part that failed half-way are there still; they end with this one.
process.exit()

function namedSections(): string[] {
  const named = process.argv.slice(2)
  const all = [...Object.keys(SECTIONS), ...Object.keys(KEPT)]
  const unknown = named.find((name) => !all.includes(name))
  if (unknown !== undefined) {
    process.stderr.write(`${unknown}: no such section; there are ${all.join(', ')}\n`)
    process.exit(2)
  }
  return named.length > 0 ? named : all
}

async function measureSection(name: string): Promise<void> {
  const where = whereNow()
  const result = await SECTIONS[name]!()
  keep(name, `${result}\n\n${where}`)
  process.stdout.write(`## ${name}\n\n${result}\n\n${where}\n\n`)
}
