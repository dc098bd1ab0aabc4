/** The shell commands of the project's pages, run as somebody who pastes them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { eventually } from './eventually.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const PASTED = '-- pasted --'

/** The blocks of shell commands under a heading of a page, down to the next heading; throws where there are none. */
export function shellBlocks(page: string, heading: string): string[] {
  const section = sectionsOf(page).find((part) => part.startsWith(`${heading}\n`))
  const blocks = blocksOf(section ?? '')
  if (blocks.length === 0) throw new Error(`${page} has no commands under "${heading}"`)
  return blocks
}

export function shellCommands(page: string, heading: string): string {
  return shellBlocks(page, heading).join('')
}

/** The commands under each heading of a page that has some, by its text, in their order. */
export function shellSections(page: string): Map<string, string> {
  const sections = sectionsOf(page).map((part): [string, string] => {
    const [heading = ''] = part.split('\n')
    return [heading.replace(/^#+ /, ''), blocksOf(part).join('')]
  })
  return new Map(sections.filter(([, commands]) => commands !== ''))
}

function sectionsOf(page: string): string[] {
  return readFileSync(join(ROOT, page), 'utf8').split(/^(?=#{2,3} )/m)
}

/** Also those that are indented, as they belong to a step of a list. */
function blocksOf(section: string): string[] {
  return [...section.matchAll(/^ *```sh\n(.*?)^ *```$/gms)].map(([, block = '']) => block)
}

/** In the root of the repository; the first command that fails ends it. `env`: beside what this process has. */
export async function shell(
  commands: string,
  env: Record<string, string> = {},
): Promise<{ code: number; output: string }> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [code] = (await once(child, 'close')) as [number]
  return { code, output: Buffer.concat(chunks).toString('utf8') }
}

export interface ShellOptions {
  cwd: string
  /** All that the shell has, but for PATH where it names none: this process's, with its Node first. */
  env: Record<string, string>
}

/** One shell for all that is pasted: variables and functions last. The first command that fails ends it. */
export class Shell {
  readonly #child: ChildProcess
  #output = ''

  constructor({ cwd, env }: ShellOptions) {
    this.#child = spawn('bash', ['-euo', 'pipefail'], {
      cwd,
      env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    })
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.on('data', (chunk: Buffer) => {
        this.#output += chunk.toString()
      })
    }
  }

  /** What the commands that were pasted last have written so far. */
  get output(): string {
    return this.#output
  }

  /** What the commands wrote; rejects with it when one fails. */
  async paste(commands: string): Promise<string> {
    this.#output = ''
    this.#child.stdin!.write(`${commands}\necho '${PASTED}'\n`)
    await eventually(() => this.#output.includes(PASTED) || this.#child.exitCode !== null, {
      timeoutMs: 200_000,
      everyMs: 50,
    })
    if (!this.#output.includes(PASTED)) throw new Error(`a command failed:\n${this.#output}`)
    return this.#output.replace(`${PASTED}\n`, '')
  }

  /** With what it left in the background, also where it ended by itself. */
  async close(): Promise<void> {
    const { pid } = this.#child
    try {
      process.kill(-pid!, 'SIGKILL')
    } catch {
      return
    }
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit')
  }
}
