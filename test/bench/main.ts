/**
 * `npm run bench`: all figures, or the sections named as arguments, into RESULTS.md between their markers.
 * Only ratios inside one table count: the machine may have other work.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { withSection } from '../support/sections.ts'
import { killServers, stopServers } from '../support/servers.ts'
import { measureAdmin } from './admin.ts'
import { measureCapacity } from './capacity/main.ts'
import { measureMemory } from './cluster-memory.ts'
import { measureScaleOut } from './cluster-scale-out.ts'
import { measureTakeOver } from './cluster-take-over.ts'
import { measureChanges } from './config.ts'
import { measureHeap } from './heap.ts'
import { compareIngest, compareProcesses } from './ingest.ts'
import { measureLateness } from './lateness.ts'
import { measureMillion } from './million.ts'
import { measureOperator } from './operator.ts'
import { comparePeers } from './peers.ts'
import { measureStarts } from './start.ts'

const RESULTS = join(import.meta.dirname, 'RESULTS.md')
const OPEN_GROUPS = [1_000, 10_000, 100_000]
const HEAP_GROUPS = 100_000
const STARTS = 3
const CHANGES = 100
const HELD_ITEMS = 1_000_000
const SCALE_OUT = { rounds: 4, measureMs: 4_000 }
const TAKE_OVER = { liveItems: [1_000, 10_000, 50_000, 200_000], rounds: 3 }
const OPERATOR = { single: 50, many: 1_000, edited: 100, held: 10_000 }
const MEMORY = { groups: 100_000, steps: 3 }

const SECTIONS: Record<string, () => Promise<string>> = {
  'ingest-always': () => compareIngest({ sync: 'always' }),
  'ingest-default': () => compareIngest({ sync: '2m' }),
  processes: () => compareProcesses({ sync: '2m', rounds: 8 }),
  admin: () => measureAdmin({ sync: '2m' }),
  lateness: () => measureLateness('always', OPEN_GROUPS),
  heap: () => measureHeap(HEAP_GROUPS),
  start: () => measureStarts(STARTS),
  config: () => measureChanges(CHANGES),
  million: () => measureMillion(HELD_ITEMS),
  'scale-out': () => measureScaleOut(SCALE_OUT.rounds, SCALE_OUT.measureMs),
  'take-over': () => measureTakeOver(TAKE_OVER.liveItems, TAKE_OVER.rounds),
  operator: () => measureOperator(OPERATOR),
  'groups-memory': () => measureMemory(MEMORY.groups, MEMORY.steps),
  peers: () => comparePeers(),
}

/** Those with a page of their own, which they write themselves. */
const PAGES: Record<string, (where: string) => Promise<void>> = { capacity: measureCapacity }

// A cluster has a listener for each of its processes.
process.setMaxListeners(100)
process.on('exit', killServers)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

for (const name of namedSections()) {
  const load = loadavg()[0]!.toFixed(1)
  const where = `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model}), load before ${load}.`
  if (name in PAGES) {
    await PAGES[name]!(where)
    continue
  }
  const result = await SECTIONS[name]!()
  keep(name, `${result}\n\n${where}`)
  process.stdout.write(`## ${name}\n\n${result}\n\n${where}\n\n`)
}
await stopServers()
// Programs of a part that failed half-way are there still; they end with this one.
process.exit()

function namedSections(): string[] {
  const named = process.argv.slice(2)
  const all = [...Object.keys(SECTIONS), ...Object.keys(PAGES)]
  const unknown = named.find((name) => !all.includes(name))
  if (unknown !== undefined) {
    process.stderr.write(`${unknown}: no such section; there are ${all.join(', ')}\n`)
    process.exit(2)
  }
  return named.length > 0 ? named : all
}

/** What stands around its place is written by hand. */
function keep(name: string, result: string): void {
  writeFileSync(RESULTS, withSection(readFileSync(RESULTS, 'utf8'), name, result))
}
