/** What the tests of the command line stand on: the program, built, and the service that it talks to. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before } from 'mocha'
import { type Harness, harness, NEVER_DUE } from '../../e2e/harness.ts'
import { tempFolder } from '../../support/temp-folders.ts'
import { buildPackages, Cli } from '../built.ts'

/** A program may be slow to start on a busy machine. */
export const WAIT = { timeoutMs: 30_000, everyMs: 50 }
/** A batch for each webhook. */
export const ONE_EACH = { batch: { ...NEVER_DUE, maxItems: 1 }, dlqPauseThreshold: 10 }

export interface Walk {
  readonly on: Harness
  /** The home folder of whoever walks. */
  readonly home: string
  /** Without a key. */
  readonly cli: Cli
  /** With the address and the owner's key in the environment. */
  readonly withKey: Cli
  /** Writes a file at home; its path. */
  file(name: string, content: string): string
}

/** For a `describe`. */
export function walk(): Walk {
  const on = harness()
  let home: string
  before(async () => {
    await buildPackages()
    home = tempFolder('cli')
  })
  const cli = () => new Cli({ HOME: home })
  return {
    on,
    get home() {
      return home
    },
    get cli() {
      return cli()
    },
    get withKey() {
      return cli().with({ PENSTOCK_URL: on.installation.service.url, PENSTOCK_API_KEY: on.api.key! })
    },
    file(name, content) {
      const path = join(home, name)
      writeFileSync(path, content)
      return path
    },
  }
}

export function linesOf<T>(output: string): T[] {
  return output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
