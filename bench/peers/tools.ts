/** What peers need of the machine and of the registries; made once a run, in a temporary folder. */
import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { tempFolder } from '../../test/support/temp-folders.ts'

const ASYNQ = join(import.meta.dirname, 'asynq')
/** Never dependencies of the project: whoever installs it does not want them. */
const PACKAGES = ['bullmq@6.7.0', 'ioredis@6.0.0', 'graphile-worker@0.18.0', 'pg@8.23.1']

export type Tool = 'go' | 'redis-server' | 'npm'

export class Tools {
  #asynq: Promise<string> | undefined
  #modules: Promise<string> | undefined

  /** Those of `wanted` that this machine lacks. */
  missing(wanted: readonly Tool[]): Tool[] {
    return wanted.filter((tool) => spawnSync(tool, [tool === 'go' ? 'version' : '--version']).status !== 0)
  }

  /** Path of the program in `asynq/`, built. */
  asynq(): Promise<string> {
    this.#asynq ??= build()
    return this.#asynq
  }

  /** A folder below which the packages of the other peers are found. */
  modules(): Promise<string> {
    this.#modules ??= install()
    return this.#modules
  }
}

async function build(): Promise<string> {
  const program = join(tempFolder('asynq'), 'asynq')
  await promisify(execFile)('go', ['build', '-o', program, '.'], { cwd: ASYNQ })
  return program
}

async function install(): Promise<string> {
  const folder = tempFolder('peers')
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', ...PACKAGES]
  await promisify(execFile)('npm', args, { cwd: folder })
  return folder
}
