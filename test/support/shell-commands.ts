/** The shell commands of the project's pages, run as somebody who pastes them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..')

/** The blocks of shell commands under a heading of a page, down to the next heading; throws where there are none. */
export function shellBlocks(page: string, heading: string): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const section = text.split(/^(?=#{2,3} )/m).find((part) => part.startsWith(`${heading}\n`))
  // Also those that are indented, as they belong to a step of a list.
  const blocks = [...(section ?? '').matchAll(/^ *```sh\n(.*?)^ *```$/gms)].map(([, block = '']) => block)
  if (blocks.length === 0) throw new Error(`${page} has no commands under "${heading}"`)
  return blocks
}

export function shellCommands(page: string, heading: string): string {
  return shellBlocks(page, heading).join('')
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
