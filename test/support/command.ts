/** A command of the repository as whoever runs the installation runs it. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '..', '..')

export interface CommandEnd {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Its end, whatever it is. `program`: from the root of the repository. */
export async function runCommand(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<CommandEnd> {
  const options = { cwd: ROOT, env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env } }
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, ...args], options)
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as CommandEnd
    return { code, stdout, stderr }
  }
}
