/**
 * Real Kubernetes parts for tests: one etcd, API server, controller-manager, scheduler and simulated nodes for a
 * whole run, on loopback; a namespace for whoever asks. The scripts beside this file build and start them.
 *
 * With CI or KUBE_REQUIRED set, a missing part is an error: a skipped suite must never look green there. CI,
 * KUBE_REQUIRED and KUBE_BUILD allow the build (minutes of Go); otherwise only what is already built is used.
 */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { endWithRun } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

/** Exit codes of build.sh. */
const NO_GO = 3
const NOT_BUILT = 4
/** For the rest of the output of a program that has ended, in case that others hold its pipes. */
const HELD_PIPES_MS = 2_000
/** Pods that could do harm are refused in namespaces of tests, as careful clusters do. */
const RESTRICTED = { 'pod-security.kubernetes.io/enforce': 'restricted' }

/** The oldest Kubernetes that the chart promises: the oldest that the programs built here can behave like. */
export const OLDEST = '1.34'

export interface Kube {
  /** Path of the kubeconfig of system:masters; beside it lie those of the users `operator` and `alice`. */
  readonly kubeconfig: string
  /** Folder with kubectl, helm and the servers. */
  readonly bin: string
  /** Data, logs and pid files of the servers. */
  readonly dir: string
}

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

const isSet = (name: string) => !['', '0', 'false', undefined].includes(process.env[name])

let started: Promise<Kube | undefined> | undefined

/** The cluster of this run; undefined, said loudly, where its parts are not there and nobody requires them. */
export function kube(): Promise<Kube | undefined> {
  started ??= start({ parts: 'controller-manager scheduler kwok' })
  return started
}

/** For a `before` hook: the cluster, or the whole suite is skipped by name. */
export async function kubeOrSkip(context: Mocha.Context): Promise<Kube> {
  const found = await kube()
  if (found === undefined) context.skip()
  return found!
}

/** A cluster of its own, for tests that stop it; the caller calls `stopKube`. */
export async function start(options: {
  parts: string
  /** An older minor version to behave like, such as `1.34`. */
  emulate?: string
}): Promise<Kube | undefined> {
  const bin = await built('build.sh', 'tests against a real Kubernetes API server')
  if (bin === undefined) return undefined
  const dir = tempFolder('kube')
  endWithRun({
    stop: async () => void (await script('stop.sh', [dir])),
    kill: () => spawnSync(scriptPath('stop.sh'), [dir], { stdio: 'ignore' }),
  })
  const ran = await startIn(dir, bin, options)
  return { dir, bin, kubeconfig: ran }
}

/** For a `before` hook: the folder with helm3 and registry, or the whole suite is skipped by name. */
export async function toolsOrSkip(context: Mocha.Context): Promise<string> {
  const found = await built('build-tools.sh', 'tests with another Helm, or a registry')
  if (found === undefined) context.skip()
  return found!
}

/** The folder that the script prints; undefined, said loudly, where it is not there and nobody requires it. */
async function built(name: string, what: string): Promise<string | undefined> {
  const required = isSet('CI') || isSet('KUBE_REQUIRED')
  const build = required || isSet('KUBE_BUILD')
  const ran = await script(name, [], { KUBE_BUILD: build ? '1' : '0' })
  if (!required && (ran.code === NO_GO || ran.code === NOT_BUILT)) {
    const why =
      ran.code === NO_GO
        ? 'Go 1.26 or newer is missing'
        : 'not all is built (npm run test:kube builds it once, in some 10 minutes)'
    process.stderr.write(`\n*** SKIPPED: ${what}: ${why}. ***\n\n`)
    return undefined
  }
  if (ran.code !== 0) throw new Error(`${name} fails: ${ran.stderr}`)
  return ran.stdout.trim()
}

/** Starts a stopped cluster again, with its data and ports. */
export async function restartKube({ dir, bin }: Kube, parts = 'controller-manager'): Promise<void> {
  await startIn(dir, bin, { parts })
}

export async function stopKube({ dir }: Kube): Promise<void> {
  await script('stop.sh', [dir])
}

async function startIn(
  dir: string,
  bin: string,
  { parts, emulate = '' }: { parts: string; emulate?: string },
) {
  const ran = await script('start.sh', [dir], { KUBE_BIN: bin, KUBE_PARTS: parts, KUBE_EMULATE: emulate })
  if (ran.code !== 0) throw new Error(`the Kubernetes parts do not start: ${ran.stderr}`)
  return ran.stdout.trim()
}

/** Runs kubectl as system:masters; never rejects. `input` goes to its stdin. */
export function kubectl({ bin, kubeconfig }: Kube, args: readonly string[], input?: string): Promise<Ran> {
  return run(join(bin, 'kubectl'), ['--kubeconfig', kubeconfig, ...args], {}, input)
}

/** Runs kubectl, returns its output, and rejects with what it said when it fails. */
export async function kubectlOk(cluster: Kube, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await kubectl(cluster, args, input)
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** A new namespace that admits restricted pods only. */
export async function namespace(cluster: Kube, prefix: string): Promise<string> {
  const name = `${prefix}-${randomBytes(4).toString('hex')}`
  const manifest = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: RESTRICTED } }
  await kubectlOk(cluster, ['apply', '-f', '-'], JSON.stringify(manifest))
  return name
}

function script(name: string, args: string[], env: Record<string, string> = {}): Promise<Ran> {
  return run(scriptPath(name), args, env)
}

function scriptPath(name: string): string {
  return join(import.meta.dirname, name)
}

/** Resolves with all that the program wrote, however it ends; never rejects. */
export function run(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
  input?: string,
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { env: { ...process.env, ...env } })
    const out: Buffer[] = []
    const err: Buffer[] = []
    let held: NodeJS.Timeout | undefined
    const done = (code: number) => {
      clearTimeout(held)
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() })
    }
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
    child.on('error', (error) => {
      err.push(Buffer.from(String(error)))
      done(-1)
    })
    child.on('close', (code) => done(code ?? -1))
    // At its exit, what it wrote last may still be in the pipes; but servers that it leaves behind may hold those.
    child.on('exit', (code) => {
      held = setTimeout(done, HELD_PIPES_MS, code ?? -1)
    })
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}
