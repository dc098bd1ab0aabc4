/** The packages as they are published: what their `build` makes, and what their users run. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'

export const ROOT = join(import.meta.dirname, '..', '..')
export const PACKAGES = ['receiver', 'client', 'cli'] as const
const PROGRAM = join(ROOT, 'packages', 'cli', 'bin', 'penstock.js')

let built: Promise<void> | undefined

/** Builds all of them, once in this process; rejects with what the compiler says. */
export function buildPackages(): Promise<void> {
  built ??= build()
  return built
}

async function build(): Promise<void> {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  const folders = PACKAGES.map((name) => join(ROOT, 'packages', name))
  try {
    await promisify(execFile)(process.execPath, [compiler, '--build', '--force', ...folders])
  } catch (error) {
    throw new Error(`the packages cannot be built:\n${(error as { stdout?: string }).stdout}`, {
      cause: error,
    })
  }
}

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** The program `penstock`, once it is built. `env`: all that it has beside PATH. */
export class Cli {
  readonly #env: Record<string, string>
  readonly #stdout: number | 'pipe'

  constructor(env: Record<string, string>, stdout: number | 'pipe' = 'pipe') {
    this.#env = env
    this.#stdout = stdout
  }

  with(env: Record<string, string>): Cli {
    return new Cli({ ...this.#env, ...env }, this.#stdout)
  }

  /** With its output in an open file, a descriptor. */
  to(stdout: number): Cli {
    return new Cli(this.#env, stdout)
  }

  /** Its end, whatever it is. */
  async run(args: readonly string[], stdin = ''): Promise<Ended> {
    const running = this.start(args)
    running.child.stdin.end(stdin)
    return running.ended
  }

  /** The one line of JSON that it prints; throws when it fails. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the test is about.
  async json(args: readonly string[], stdin = ''): Promise<any> {
    const { code, stdout, stderr } = await this.run([...args, '--json'], stdin)
    if (code !== 0) throw new Error(`penstock ${args.join(' ')} ended with ${code}: ${stderr}`)
    return JSON.parse(stdout)
  }

  /** Without waiting for its end. `output`: so far. */
  start(args: readonly string[]) {
    const env = { PATH: process.env.PATH!, ...this.#env }
    const stdio: ['pipe', 'pipe', 'pipe'] = ['pipe', this.#stdout as 'pipe', 'pipe']
    const child = spawn(process.execPath, [PROGRAM, ...args], { env, stdio })
    const texts = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.on('data', (chunk: Buffer) => {
        texts[name] += chunk.toString()
      })
    // A program that refuses its arguments does not read.
    child.stdin.on('error', () => {})
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    const ended = once(child, 'close').then(([code]): Ended => {
      process.off('exit', kill)
      return { code: code as number, ...texts }
    })
    return { child, output: texts, ended }
  }
}
