/** What runs every night beside `.ci/run` (`npm run test:nightly`): the simulation, the real node, the faults; each, whatever failed before. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const PROGRAMS = [
  ['shard/simulation/main.ts', '--runs', '20000'],
  ['node/main.ts'],
  ['faults/nightly.ts'],
] as const

const failed = PROGRAMS.flatMap(([program, ...args]) => {
  const path = join(import.meta.dirname, program)
  const { status } = spawnSync(process.execPath, [path, ...args], { stdio: 'inherit' })
  return status === 0 ? [] : [program]
})
process.stdout.write(`${failed.length === 0 ? 'nightly: passed' : `nightly: FAILED: ${failed.join(', ')}`}\n`)
process.exitCode = failed.length === 0 ? 0 : 1
