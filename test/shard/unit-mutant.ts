/**
 * `node test/shard/unit-mutant.ts NAME`: the unit tests of one mutant, over the core without its rule. The last line is a
 * `UnitRun` as JSON. A test file that cannot be loaded is no failed test: then there is none.
 */
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import Mocha from 'mocha'
import { mutated } from './mutate.ts'
import { UNIT_MUTANTS } from './unit-mutants.ts'

/** What waits for a rule that is left out may wait for ever. */
const TEST_TIMEOUT_MS = 10_000

export interface UnitRun {
  readonly passed: number
  /** Titles of failed tests, without those of hooks. */
  readonly failed: readonly string[]
}

const [name] = process.argv.slice(2)
const mutant = UNIT_MUTANTS.find((each) => each.name === name)
if (!mutant) throw new Error(`there is no unit mutant ${name}`)
registerHooks({ load: (url, context, next) => mutated(url, next(url, context), mutant) })

const mocha = new Mocha({ reporter: Mocha.reporters.Base, timeout: TEST_TIMEOUT_MS })
mocha.addFile(join(import.meta.dirname, mutant.test))
await mocha.loadFilesAsync()
let passed = 0
const failed: string[] = []
const runner = mocha.run(() => {
  process.stdout.write(`\n${JSON.stringify({ passed, failed } satisfies UnitRun)}\n`, () => process.exit())
})
runner.on('pass', () => passed++)
runner.on('fail', ({ type, title }) => {
  if (type === 'test') failed.push(title)
})
