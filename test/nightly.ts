/** What runs every night beside `.ci/run` (`npm run test:nightly`): the real node, then the faults; both, even if one fails. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const PROGRAMS = ['node/main.ts', 'faults/nightly.ts']

const failed = PROGRAMS.filter((program) => {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, program)], { stdio: 'inherit' })
  return status !== 0
})
process.stdout.write(`${failed.length === 0 ? 'nightly: passed' : `nightly: FAILED: ${failed.join(', ')}`}\n`)
process.exitCode = failed.length === 0 ? 0 : 1
