/**
 * `npm test`: every test/**\/*.test.ts, one file after the other, in four processes side by side. Tests that start and
 * kill whole services mostly wait, and so do those of a broker's faults and those against a Kubernetes API server.
 *
 * `npm test -- PATH ...`: these files and folders, in this process. `npm run test:fast`: all files that start no server
 * and no program, in this process, in less than a minute. `npm run test:several`: what looks at `npm start` from outside,
 * with several processes (`support/shape.ts`), in two processes side by side.
 *
 * The last line is `N passed, N failed, N skipped`. The exit code is 0 only when nothing failed and something ran.
 */
import { fork } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import Mocha from 'mocha'
import { NATS, POSTGRES, userOf } from '../internal/embedded/server-user.ts'
import { undocumented } from './support/answers.ts'
import { testsWithoutPrograms } from './support/reach.ts'
import { mochaGlobalSetup, mochaGlobalTeardown, mochaHooks } from './support/setup.ts'
import { inSeveralProcesses, SEVERAL, SHAPE_VARIABLE } from './support/shape.ts'
import { addShown, type Shown, shown } from './support/traffic.ts'

/** The whole run, ms. */
const BUDGET_MS = 2_700_000
/** A lane ends so much earlier, ms: it stops its servers and tells what it has, and the last line that it printed names what hangs. */
const LANE_ENDS_BEFORE_MS = 30_000
/** Lanes that start their servers at once may take a minute for it on two cores. */
const TEST_TIMEOUT_MS = 180_000
/** Folders whose tests run processes of their own. */
const WHOLE_SERVICES = ['cluster/', 'faults/', 'power/']
/** Folders whose tests mostly wait, for what is due and for what is lost. */
const WAITING = ['e2e/', 'nats/', 'clients/', 'packages/']
/** Folders whose tests run against one cluster of Kubernetes parts (`kube/`): whoever needs it stands in its lane. */
const KUBERNETES = ['chart/', 'operator/']
/** Files and folders that run once more with several processes of `npm start`, by lanes. */
const SEVERAL_LANES = [['e2e'], ['faults/crash.test.ts', 'faults/stop.test.ts']]

interface Counts {
  passed: number
  /** Each with its error, whole: whoever sees only the end of the output sees what to look at. */
  failed: string[]
  skipped: string[]
}

/** What a lane tells at its end. */
interface Report {
  counts: Counts
  shown: Shown
  undocumented: readonly string[]
}

const counts: Counts = { passed: 0, failed: [], skipped: [] }
const [first, ...rest] = process.argv.slice(2)
const budgetMs = first === '--lane' ? BUDGET_MS - LANE_ENDS_BEFORE_MS : BUDGET_MS
const deadline = setTimeout(() => finish(`not done within ${budgetMs / 1000} s`), budgetMs)

try {
  if (first === '--lane') await runAll(rest)
  else if (first === '--fast') await runAll(testsWithoutPrograms(join(import.meta.dirname, '..')))
  else if (first === '--several') await runSeveral()
  else if (first !== undefined) await runAll([first, ...rest].flatMap(testsIn))
  else await runWhole()
  clearTimeout(deadline)
  finish()
} catch (error) {
  finish(error instanceof Error ? (error.stack ?? error.message) : String(error))
}

/** The tests below a folder; a file is itself. A folder without any is a mistake. */
function testsIn(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path]
  const found = globSync('**/*.test.ts', { cwd: path }).sort()
  if (found.length === 0) throw new Error(`there are no tests in ${path}`)
  return found.map((file) => join(path, file))
}

async function runWhole(): Promise<void> {
  const found = globSync('**/*.test.ts', { cwd: import.meta.dirname })
  if (found.length === 0) throw new Error('there are no tests')
  const below = (folders: string[]) =>
    found.filter((path) => folders.some((folder) => path.startsWith(folder)))
  const apart = [below(WHOLE_SERVICES), below(KUBERNETES), below(WAITING)]
  const rest = found.filter((path) => !apart.some((lane) => lane.includes(path)))
  const lanes = [rest, ...apart].map((files) => files.sort().map((path) => join(import.meta.dirname, path)))
  await runLanes(lanes)
  // Judges what all the others have shown.
  await runAll(
    ['contract/whole-run.ts', 'contract/answers.ts'].map((path) => join(import.meta.dirname, path)),
  )
}

async function runSeveral(): Promise<void> {
  const lanes = SEVERAL_LANES.map((paths) =>
    paths.flatMap((path) => testsIn(join(import.meta.dirname, path))),
  )
  await runLanes(lanes, SEVERAL)
  await runAll([join(import.meta.dirname, 'contract/answers.ts')])
}

/** `shape`: see `support/shape.ts`. */
async function runLanes(lanes: string[][], shape = process.env[SHAPE_VARIABLE] ?? ''): Promise<void> {
  // Lanes that make a user at the same moment would each make one.
  for (const server of [NATS, POSTGRES]) userOf(server)
  const others = await Promise.all(lanes.map((files, lane) => runLane(files, { live: lane === 0, shape })))
  // Only now, in one piece: two runs that print at once cannot be read.
  for (const { output } of others) process.stdout.write(output)
}

/** One lane in a process of its own; `live`: its output is printed as it comes. */
async function runLane(
  files: string[],
  { live, shape }: { live: boolean; shape: string },
): Promise<{ output: string }> {
  const env = { ...process.env, [SHAPE_VARIABLE]: shape }
  const child = fork(import.meta.filename, ['--lane', ...files], { silent: true, env })
  // Not SIGKILL: it has servers to stop.
  const kill = () => child.kill('SIGTERM')
  process.once('exit', kill)
  const chunks: Buffer[] = []
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk: Buffer) => (live ? process.stdout.write(chunk) : chunks.push(chunk)))
  }
  let report: Report | undefined
  child.on('message', (message) => {
    report = message as Report
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  process.off('exit', kill)
  take(report, code)
  return { output: Buffer.concat(chunks).toString() }
}

function take(report: Report | undefined, code: number | null): void {
  if (report === undefined) {
    counts.failed.push(`a lane ended with ${code}`)
    return
  }
  counts.passed += report.counts.passed
  counts.failed.push(...report.counts.failed)
  counts.skipped.push(...report.counts.skipped)
  addShown(report.shown)
  undocumented.push(...report.undocumented)
}

async function runAll(files: string[]): Promise<void> {
  const mocha = new Mocha({ reporter: 'spec', timeout: TEST_TIMEOUT_MS, forbidOnly: true, color: false })
  mocha.rootHooks(mochaHooks)
  mocha.globalSetup(mochaGlobalSetup)
  mocha.globalTeardown(mochaGlobalTeardown)
  for (const file of files) mocha.addFile(relative(process.cwd(), file))
  await mocha.loadFilesAsync()
  await new Promise<void>((resolve) => {
    const runner = mocha.run(() => resolve())
    runner.on('pass', () => counts.passed++)
    // Also failed hooks, which are no tests.
    runner.on('fail', (test, error) => {
      const shape = inSeveralProcesses ? 'in several processes: ' : ''
      counts.failed.push(`${shape}${test.fullTitle()}\n${String(error.stack ?? error)}`)
    })
    runner.on('pending', (test) => counts.skipped.push(test.fullTitle()))
  })
}

/** Prints the totals and ends the process: a handle that a test left open must not hold the result back. */
function finish(problem?: string): void {
  if (problem !== undefined) {
    counts.failed.push(`the run: ${problem}`)
  }
  const code = counts.failed.length === 0 && counts.passed > 0 ? 0 : 1
  if (first === '--lane') {
    const report: Report = { counts, shown: shown(), undocumented }
    process.send!(report, () => process.exit(code))
    return
  }
  if (counts.skipped.length > 0) {
    process.stdout.write(`\nSKIPPED:\n${counts.skipped.map((title) => `  - ${title}\n`).join('')}`)
  }
  if (counts.failed.length > 0) {
    const shown = counts.failed.map((failure) => `  - ${failure.replaceAll('\n', '\n    ')}\n`)
    process.stdout.write(`\nFAILED:\n${shown.join('')}`)
  }
  process.stdout.write(
    `\n${counts.passed} passed, ${counts.failed.length} failed, ${counts.skipped.length} skipped\n`,
  )
  process.exit(code)
}
