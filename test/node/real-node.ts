/**
 * One real node (kubelet, containerd, runc) under a real control plane, with the project's image on it. All that it
 * needs is built by the scripts of test/kube and kept in ~/.cache for the next time; nothing is pulled.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { isRunning } from '../../internal/embedded/process-identity.ts'
import { type Kube, run } from '../kube/kube.ts'

/** Commands that the scripts call, with their Debian packages. */
const COMMANDS: readonly (readonly [string, string])[] = [
  ['debootstrap', 'debootstrap'],
  ['buildah', 'buildah'],
  ['runc', 'runc'],
  ['nft', 'nftables'],
  ['ip', 'iproute2'],
  ['nsenter', 'util-linux'],
  ['openssl', 'openssl'],
  ['curl', 'curl'],
  ['git', 'git'],
]
/** Not below a folder for temporary files: whoever sweeps those must not meet the mounts of a node that runs. */
const home = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'penstock-node')
const dir = join(home, 'run')
const lock = join(home, 'pid')
/** The folder with the programs of the node that ran last. */
const partsFile = join(home, 'parts')
const scripts = join(import.meta.dirname, '..', 'kube')
/** Where images.sh leaves its archives. */
export const IMAGES = join(home, 'images')
/** Of the repository. */
export const ROOT = join(import.meta.dirname, '..', '..')

const further: { readonly what: string; readonly build: () => Promise<unknown> }[] = []
let started: Promise<Kube> | undefined

/** Has `build` done beside the parts of the node, which take long, where a file is going to need it. */
export function alsoBuild(what: string, build: () => Promise<unknown>): void {
  further.push({ what, build })
}

/** The node of this run. Rejects where something that it needs is missing, and says what. */
export function node(): Promise<Kube> {
  started ??= start()
  return started
}

async function start(): Promise<Kube> {
  requireAll()
  takeLock()
  tell('building the parts of a node (minutes, the first time)')
  // Compilers have the processors, and images mostly wait for packages and disks.
  const [bin] = await Promise.all([script('build.sh', ['--node']), buildImages()])
  const env = { KUBE_BIN: bin, PAUSE_TAR: join(IMAGES, 'pause.tar') }
  stopNode(bin)
  writeFileSync(partsFile, bin)
  rmSync(dir, { recursive: true, force: true })
  // Before the process goes, whatever ends it.
  process.prependOnceListener('exit', () => stopNode(bin))
  tell('starting the node')
  const kubeconfig = await script('node.sh', ['up', dir], env)
  const cluster = { dir, bin, kubeconfig }
  await load(cluster, 'penstock.tar')
  return cluster
}

async function buildImages(): Promise<void> {
  tell("building the image from the project's Dockerfile")
  await script('images.sh', [IMAGES])
  for (const { what, build } of further) {
    tell(`building ${what}`)
    await build()
  }
}

/** Makes an image of IMAGES known to the node. */
export async function load({ bin }: Kube, archive: string): Promise<void> {
  await script('node.sh', ['load', dir, join(IMAGES, archive)], { KUBE_BIN: bin })
}

/** Takes away the node of a run that was ended before it could do so; no run of another process may go on. */
export function sweepNode(): void {
  if (!existsSync(partsFile) || isTaken()) return
  stopNode(readFileSync(partsFile, 'utf8'))
}

/** Its logs stay until the next start. */
function stopNode(bin: string): void {
  const env = { ...process.env, KUBE_BIN: bin }
  spawnSync(join(scripts, 'node.sh'), ['down', dir], { stdio: 'inherit', env })
}

function requireAll(): void {
  if (process.getuid?.() !== 0) throw new Error('A real node needs root.')
  const path = `${process.env.PATH}${delimiter}/usr/sbin${delimiter}/sbin`
  process.env.PATH = path
  const isThere = (command: string) =>
    spawnSync('sh', ['-c', 'command -v "$1"', 'sh', command], { env: { PATH: path } }).status === 0
  const missing = COMMANDS.filter(([command]) => !isThere(command))
  if (missing.length === 0) return
  const names = missing.map(([command]) => command).join(', ')
  const packages = missing.map(([, name]) => name).join(' ')
  throw new Error(`Not found: ${names}. apt-get install --no-install-recommends ${packages}`)
}

/** Two runs would end each other's node. */
function takeLock(): void {
  mkdirSync(home, { recursive: true })
  if (isTaken()) throw new Error(`${readFileSync(lock, 'utf8')} runs these tests now.`)
  writeFileSync(lock, String(process.pid))
}

function isTaken(): boolean {
  const other = Number(readFileSync(lock, { encoding: 'utf8', flag: 'a+' }))
  return other > 0 && other !== process.pid && isRunning(other)
}

/** What it prints; rejects with what it said when it fails. */
export async function script(
  name: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const { code, stdout, stderr } = await run('bash', [join(scripts, name), ...args], env)
  if (code !== 0) throw new Error(`${name} ended with ${code}: ${stderr}`)
  return stdout.trim()
}

export function tell(text: string): void {
  process.stderr.write(`  ${text}\n`)
}
