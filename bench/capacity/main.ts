/**
 * `node bench/capacity/main.ts [fleet]`: writes the tables of docs/operations/capacity.md anew from measured.json, which `npm run bench --
 * capacity` has measured; `fleet`: after the simulation, anew.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultPolicy } from '../../test/group/notation.ts'
import { withSection } from '../../test/support/sections.ts'
import { openInSteps } from '../cluster-memory.ts'
import { whereNow } from '../results.ts'
import { calibrate } from './calibration.ts'
import { type Fleet, simulateFleet } from './fleet.ts'
import {
  constantsTable,
  fleetTable,
  type Measured,
  memoryTable,
  plansTable,
  pointsTable,
  pricesTable,
} from './tables.ts'

export const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'operations', 'capacity.md')
const MEASURED = join(import.meta.dirname, 'measured.json')
const SEED = 1
/** Opened on an actor, three times. */
const GROUPS = 100_000

/** A million items a second over ten million open groups. */
const FLEET: Fleet = {
  shards: 512,
  nodes: 128,
  itemsPerSecond: 1_000_000,
  itemBytes: 1_024,
  // A quarter of all keys is between two groups at any time.
  keys: 13_250_000,
  policy: { ...defaultPolicy, idleTimeoutMs: 30_000, maxWaitFromFirstMs: 40_000 },
  // A group's life, and the time until the next one of its key.
  rampMs: 52_500,
  warmMs: 95_000,
  measureMs: 15_000,
}

const TABLES: Record<string, (measured: Measured) => string> = {
  constants: constantsTable,
  points: pointsTable,
  memory: memoryTable,
  plans: plansTable,
  prices: pricesTable,
  fleet: fleetTable,
}

export function readMeasured(): Measured {
  return JSON.parse(readFileSync(MEASURED, 'utf8')) as Measured
}

/** Measures, simulates, and writes the page. */
export async function measureCapacity(): Promise<void> {
  const where = whereNow()
  const calibration = await calibrate()
  keep({ where, calibration, memory: await openInSteps(GROUPS, 3), fleet: simulated() })
}

function simulated(): Measured['fleet'] {
  return { ...FLEET, figures: simulateFleet(FLEET, SEED) }
}

function keep(measured: Measured): void {
  writeFileSync(MEASURED, `${JSON.stringify(measured, null, 2)}\n`)
  writeFileSync(PAGE, pageOf(readFileSync(PAGE, 'utf8'), measured))
}

/** The page with its tables anew. */
export function pageOf(page: string, measured: Measured): string {
  return Object.entries(TABLES).reduce(
    (text, [name, tableOf]) => withSection(text, name, tableOf(measured)),
    page,
  )
}

if (import.meta.main) {
  const measured = readMeasured()
  keep(process.argv[2] === 'fleet' ? { ...measured, fleet: simulated() } : measured)
}
