/** The packages as their users install them: packed, and installed into an empty project under an older Node. */
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { tempFolder } from '../support/temp-folders.ts'
import { type Ended, ROOT } from './built.ts'

const SCRIPT = join(import.meta.dirname, 'nodes.sh')
/** What npm and the shell script say when the registry cannot be asked. */
const NO_REGISTRY =
  /EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|npm is not installed/

export interface Packed {
  readonly name: string
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

/** Tarballs of all packages in a folder of their own, in the order of their names; their builds run before. */
export async function packAll(): Promise<{ folder: string; packed: Packed[] }> {
  const folder = tempFolder('packed')
  const args = ['pack', '--workspaces', '--json', '--pack-destination', folder]
  const { stdout } = await promisify(execFile)('npm', args, {
    cwd: ROOT,
    env: npmEnv(dirname(process.execPath)),
  })
  // What the builds say stands before it.
  const told: unknown = JSON.parse(stdout.slice(stdout.search(/^[[{]/m)))
  const packed = Object.values(told as Record<string, Packed>)
  return { folder, packed: packed.sort((a, b) => a.name.localeCompare(b.name)) }
}

/** For a `before` hook: the folder of `bin/node` of this version. That of the project is the newest. */
export async function nodeOrSkip(context: Mocha.Context, major: number): Promise<string> {
  if (process.version.startsWith(`v${major}.`)) return dirname(process.execPath)
  const { stdout } = await orSkip(context, `Node ${major}`, () => promisify(execFile)(SCRIPT))
  return join(stdout.trim(), 'node_modules', `node-${major}`, 'bin')
}

/** An empty project with these tarballs, installed by npm under that Node. */
export class Project {
  readonly folder: string
  readonly #bin: string

  private constructor(folder: string, bin: string) {
    this.folder = folder
    this.#bin = bin
  }

  /** Skips the test when the registry cannot be asked for what the packages depend on. */
  static async install(context: Mocha.Context, bin: string, tarballs: readonly string[]) {
    const folder = tempFolder('project')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}\n')
    const project = new Project(folder, bin)
    const quiet = [
      '--engine-strict',
      '--prefer-offline',
      '--no-audit',
      '--no-fund',
      '--fetch-retries=1',
      '--fetch-retry-mintimeout=500',
    ]
    const args = ['install', ...quiet, ...tarballs]
    const output = await orSkip(context, 'what the packages depend on', () =>
      promisify(execFile)('npm', args, { cwd: folder, env: npmEnv(bin) }),
    )
    return { project, output: output.stdout + output.stderr }
  }

  /** A program of the project, by the Node of the project. `env`: all that it has beside PATH. */
  async run(program: string, args: readonly string[], env: Record<string, string>): Promise<Ended> {
    const options = {
      cwd: this.folder,
      env: { PATH: `${this.#bin}:${process.env.PATH}`, ...env },
      timeout: 120_000,
    }
    try {
      const { stdout, stderr } = await promisify(execFile)(program, args, options)
      return { code: 0, stdout, stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as Ended
      return { code, stdout, stderr }
    }
  }
}

/** Nothing of the npm that may have started this run. */
function npmEnv(bin: string): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^npm_(?!config_(registry|cache|userconfig))/i.test(name),
  )
  return { ...(Object.fromEntries(kept) as Record<string, string>), PATH: `${bin}:${process.env.PATH}` }
}

async function orSkip<T>(context: Mocha.Context, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const said = String((error as { stderr?: string }).stderr ?? error).trim()
    if (!NO_REGISTRY.test(said)) throw new Error(`${what} cannot be installed: ${said}`, { cause: error })
    const missing = `${what} is missing, and the registry cannot be reached: ${said.split('\n').find((line) => NO_REGISTRY.test(line))}`
    if (process.env.CI) throw new Error(missing, { cause: error })
    process.stderr.write(`\n*** SKIPPED: ${missing}. ***\n\n`)
    return context.skip()
  }
}
