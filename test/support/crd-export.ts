/** `npm run crd -- export`, as a process of its own. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'

const MAIN = join(import.meta.dirname, '..', '..', 'cmd', 'crd', 'main.ts')

export interface Exported {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** However it ends. `env`: all that it has beside PATH. */
export function crdExport(args: readonly string[], env: Record<string, string>): Promise<Exported> {
  const options = { env: { PATH: process.env.PATH, ...env } }
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, 'export', ...args], options, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    )
  })
}
