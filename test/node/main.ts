/**
 * The whole system in pods of a real node (`npm run test:node`): every file on the newest Kubernetes that test/kube builds,
 * then the short part on one that behaves like the oldest that the chart promises. It ends by itself: after
 * `--minutes` (default 25) what still runs is ended, and the node with its mounts and its network is taken away.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { OLDEST } from '../kube/kube.ts'
import { sweepNode } from './real-node.ts'

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '25' } } })
/** For a run that was told to end: it takes its node away itself. */
const GRACE_MS = 30_000
const here = import.meta.dirname
const mocha = join(here, '..', '..', 'node_modules', '.bin', 'mocha')
if (!(Number(values.minutes) > 0)) {
  process.stderr.write(`--minutes: ${values.minutes} is no number above 0\n`)
  process.exit(2)
}
let end = performance.now() + Number(values.minutes) * 60_000

const runs: readonly { name: string; files: readonly string[]; env: NodeJS.ProcessEnv }[] = [
  { name: 'the newest Kubernetes', files: ['local', 'cluster', 'upgrade'], env: {} },
  { name: `Kubernetes ${OLDEST}`, files: ['short'], env: { KUBE_EMULATE: OLDEST } },
]
let failed = 0
for (const { name, files, env } of runs) {
  const began = performance.now()
  process.stdout.write(`\n${name}\n`)
  const code = await mochaRun(files, env)
  if (code !== 0) failed++
  const seconds = Math.round((performance.now() - began) / 1000)
  process.stdout.write(`${name}: ${code === 0 ? 'passed' : `FAILED with ${code}`}, ${seconds} s\n`)
}
process.stdout.write(`${runs.length - failed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1

/** Its exit code; `limit` when the time for all is over. */
function mochaRun(files: readonly string[], env: NodeJS.ProcessEnv): Promise<number | string> {
  if (performance.now() >= end) return Promise.resolve('limit')
  const args = ['--bail', '--timeout', '900000', ...files.map((file) => join(here, `${file}.ts`))]
  // A group of its own: what it started ends with it.
  const child = spawn(mocha, args, { stdio: 'inherit', env: { ...process.env, ...env }, detached: true })
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-child.pid!, name)
    } catch {} // It has ended.
  }
  const stop = (name: NodeJS.Signals) => {
    signal(name)
    setTimeout(signal, GRACE_MS, 'SIGKILL').unref()
  }
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => {
      end = 0 // No further run.
      stop(name)
    })
  return new Promise((resolve) => {
    let isLate = false
    const limit = setTimeout(() => {
      isLate = true
      process.stderr.write(`\n*** The limit of ${values.minutes} minutes is over. ***\n`)
      stop('SIGTERM')
    }, end - performance.now())
    child.on('exit', (code, name) => {
      clearTimeout(limit)
      signal('SIGKILL')
      if (code !== 0) sweepNode()
      resolve(isLate ? 'limit' : (code ?? name ?? 1))
    })
  })
}
