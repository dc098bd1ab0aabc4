/** What people put charts with: the older Helm, and a registry of charts on loopback. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Kube } from '../kube/kube.ts'
import { tempFolder } from '../support/temp-folders.ts'

/** The same cluster with Helm 3 as its helm. `tools`: the folder of `toolsOrSkip`. */
export function withHelm3(cluster: Kube, tools: string): Kube {
  const bin = join(tempFolder('helm3'), 'bin')
  mkdirSync(bin)
  symlinkSync(join(tools, 'helm3'), join(bin, 'helm'))
  return { ...cluster, bin }
}

export interface Registry {
  /** `localhost:<port>`. */
  readonly host: string
  close(): void
}

/** One that holds everything in memory. */
export async function startRegistry(tools: string): Promise<Registry> {
  const child = spawn(join(tools, 'registry'), ['--port', '0'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const port = await portOf(child)
  return {
    host: `localhost:${port}`,
    close() {
      process.off('exit', kill)
      kill()
    },
  }
}

async function portOf(child: ChildProcess): Promise<string> {
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr! })) {
    said.push(line)
    const [, port] = /serving on port (\d+)$/.exec(line) ?? []
    if (port === undefined) continue
    child.stderr!.resume()
    return port
  }
  throw new Error(`the registry does not start: ${said.join('\n')}`)
}
