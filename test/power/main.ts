/**
 * Cuts the power of the servers for as long as one likes (`npm run test:power`):
 *
 *   npm run test:power -- --seed 7                     every kind of `kinds.ts`, 5 cuts each
 *   npm run test:power -- --kinds always,interval-torn --cuts 20
 *
 * First the control: a file that was not synced is gone after a cut, one that was synced is there. The first line names
 * the seed, then a line a kind, and at the end a table. Exit code 0: the power was really cut, and every promise held.
 * 3: something that it needs is missing.
 */
import { parseArgs } from 'node:util'

import { killServers, stopServers } from '../support/servers.ts'
import { checkPowerIsCut } from './control.ts'
import { findGuest, type Guest } from './guest.ts'
import { POWER_KINDS } from './kinds.ts'
import { type PowerSummary, powerRun } from './power-run.ts'
import { powerTable } from './table.ts'

const MISSING = 3

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    cuts: { type: 'string', default: '5' },
    kinds: { type: 'string', default: Object.keys(POWER_KINDS).join(',') },
  },
})
const [seed, cuts] = [Number(values.seed), Number(values.cuts)]
const kinds = values.kinds.split(',')
const unknown = kinds.find((kind) => !Object.hasOwn(POWER_KINDS, kind))
if (unknown !== undefined) {
  process.stderr.write(`--kinds: there is no ${unknown}; there are ${Object.keys(POWER_KINDS).join(', ')}\n`)
  process.exit(2)
}

// Each machine and each node that runs waits for the end of this process.
process.setMaxListeners(50)
process.on('exit', killServers)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

process.stdout.write(`seed ${seed}: ${cuts} cuts of each of ${kinds.join(', ')}\n`)
const guest = await findGuest({ fetch: true }).catch((error: Error) => {
  process.stderr.write(`*** SKIPPED: no power was cut. ${error.message} ***\n`)
  process.exit(MISSING)
})
let failed = 0
await report('control', () => checkPowerIsCut(guest, seed))
const held = failed === 0 ? await runAll(guest) : new Map<string, PowerSummary>()
process.stdout.write(`${powerTable(held)}\n${held.size} held, ${failed} failed\n`)
await stopServers()
process.exit(failed === 0 ? 0 : 1)

async function runAll(on: Guest): Promise<Map<string, PowerSummary>> {
  const summaries = new Map<string, PowerSummary>()
  for (const kind of kinds) {
    await report(`${kind}, seed ${seed}`, async () => {
      const summary = await powerRun({ seed, kind, cuts, guest: on })
      summaries.set(kind, summary)
      return summary
    })
  }
  return summaries
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
