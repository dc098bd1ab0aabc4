/**
 * What a cluster is backed up with, none of which comes along: the command of the NATS project, and pg_dump with a
 * server that it can read. With CI set a missing one is an error, else the suite is skipped by name.
 */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Where Debian's packages have each version of Postgres; `PENSTOCK_TEST_POSTGRES_BIN` names another folder. */
const POSTGRES = '/usr/lib/postgresql'
const PROGRAMS = ['initdb', 'postgres', 'pg_dump', 'pg_restore']

export interface BackupTools {
  /** Folder with `nats`. */
  readonly nats: string
  /** Folder with `postgres`, `initdb`, `pg_dump` and `pg_restore` of one version. */
  readonly postgres: string
}

/** For a `before` hook. */
export async function backupToolsOrSkip(context: Mocha.Context): Promise<BackupTools> {
  const [nats, postgres] = [await natsFolder(), postgresFolder()]
  if (typeof nats === 'string' && postgres !== undefined) return { nats, postgres }
  const missing = [
    ...(typeof nats === 'string' ? [] : [`nats (${nats.why})`]),
    ...(postgres === undefined ? [`${PROGRAMS.join(', ')} in ${POSTGRES}/<version>/bin`] : []),
  ].join(' and ')
  if (process.env.CI) throw new Error(`a backup of a cluster wants ${missing}`)
  process.stderr.write(`\n*** SKIPPED: backup and restore of a cluster: missing ${missing}. ***\n\n`)
  return context.skip() as never
}

async function natsFolder(): Promise<string | { why: string }> {
  const env = { ...process.env, NATS_CLI_BUILD: process.env.CI ? '1' : '0' }
  try {
    return (await promisify(execFile)(join(import.meta.dirname, 'nats-cli.sh'), { env })).stdout.trim()
  } catch (error) {
    return { why: `${(error as { stderr?: string }).stderr ?? error}`.trim() }
  }
}

function postgresFolder(): string | undefined {
  const named = process.env.PENSTOCK_TEST_POSTGRES_BIN
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES).sort((a, b) => Number(b) - Number(a)) : []
  const folders = named === undefined ? versions.map((version) => join(POSTGRES, version, 'bin')) : [named]
  return folders.find((folder) => PROGRAMS.every((program) => existsSync(join(folder, program))))
}
