/**
 * Unit tests notice what the simulation shows too seldom: each runs in a process of its own, over the real core with one rule left
 * out, and one test must fail there.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { UnitRun } from './unit-mutant.ts'
import { UNIT_MUTANTS } from './unit-mutants.ts'

const PROGRAM = join(import.meta.dirname, 'unit-mutant.ts')
const TIMEOUT_MS = 60_000

async function runUnder(name: string): Promise<UnitRun> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, name], { timeout: TIMEOUT_MS })
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as UnitRun
}

describe('unit tests of a shard', function () {
  this.timeout(2 * TIMEOUT_MS)

  for (const { name, rule, test, fails } of UNIT_MUTANTS) {
    it(`notice a core without ${name}: ${rule}`, async () => {
      const { passed, failed } = await runUnder(name)
      expect(failed, test).to.include(fails)
      // Where all fail, they may for another reason.
      expect(passed, `tests of ${test} that need no such rule`).to.be.at.least(1)
    })
  }
})
