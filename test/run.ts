/**
 * `npm test`: every test/**\/*.test.ts but the benchmarks, in one process, one after the other (or the files
 * named as arguments). Its last line is `N passed, N failed, N skipped`; exit code 0 only when nothing
 * failed and something ran.
 */
import { globSync } from 'node:fs'
import { join, relative } from 'node:path'
import Mocha from 'mocha'

import { mochaGlobalSetup, mochaGlobalTeardown } from './support/setup.ts'

/** The whole run, ms; a test that hangs is then named by what was printed last. */
const BUDGET_MS = 590_000
const TEST_TIMEOUT_MS = 20_000

interface Counts {
  passed: number
  failed: number
  skipped: string[]
}

const counts: Counts = { passed: 0, failed: 0, skipped: [] }
const deadline = setTimeout(() => finish(`not done within ${BUDGET_MS / 1000} s`), BUDGET_MS)

try {
  await runAll(testFiles(process.argv.slice(2)))
  clearTimeout(deadline)
  finish()
} catch (error) {
  finish(error instanceof Error ? (error.stack ?? error.message) : String(error))
}

function testFiles(named: string[]): string[] {
  const found = globSync('**/*.test.ts', { cwd: import.meta.dirname }).filter(
    (path) => !path.startsWith('bench/'),
  )
  const files = named.length > 0 ? named : found.sort().map((path) => join(import.meta.dirname, path))
  if (files.length === 0) throw new Error('there are no tests')
  return files
}

async function runAll(files: string[]): Promise<void> {
  const mocha = new Mocha({ reporter: 'spec', timeout: TEST_TIMEOUT_MS, forbidOnly: true })
  mocha.globalSetup(mochaGlobalSetup)
  mocha.globalTeardown(mochaGlobalTeardown)
  for (const file of files) mocha.addFile(relative(process.cwd(), file))
  await mocha.loadFilesAsync()
  await new Promise<void>((resolve) => {
    const runner = mocha.run(() => resolve())
    runner.on('pass', () => counts.passed++)
    // Also failed hooks, which are no tests.
    runner.on('fail', () => counts.failed++)
    runner.on('pending', (test) => counts.skipped.push(test.fullTitle()))
  })
}

/** Prints the totals and ends the process: a handle that a test left open must not hold the result back. */
function finish(problem?: string): void {
  if (problem !== undefined) {
    counts.failed++
    process.stdout.write(`\nTHE RUN FAILED: ${problem}\n`)
  }
  if (counts.skipped.length > 0) {
    process.stdout.write(`\nSKIPPED:\n${counts.skipped.map((title) => `  - ${title}\n`).join('')}`)
  }
  process.stdout.write(
    `\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped.length} skipped\n`,
  )
  process.exit(counts.failed === 0 && counts.passed > 0 ? 0 : 1)
}
