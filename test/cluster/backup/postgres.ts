/** A Postgres server of an installed version, as an installation may have instead of the one that comes along. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import postgres from 'postgres'

import { freePort } from '../../../internal/embedded/port.ts'
import { giveTo, POSTGRES, userOf } from '../../../internal/embedded/server-user.ts'
import { eventually } from '../../support/eventually.ts'
import { tempFolder } from '../../support/temp-folders.ts'

export interface InstalledPostgres {
  /** Of the database that `renew` makes. */
  readonly url: string
  /** The database as it is on the first day: empty, whatever was in it. */
  renew(): Promise<void>
  stop(): Promise<void>
}

/** `bin`: folder with `initdb` and `postgres`. Nothing of it is synced to the disk. */
export async function installedPostgres(bin: string): Promise<InstalledPostgres> {
  const dir = join(tempFolder('installed-postgres'), 'postgres')
  mkdirSync(dir)
  const user = userOf(POSTGRES)
  giveTo(user, dir)
  const as = { cwd: dir, env: { PATH: bin, LC_ALL: 'C' }, ...user }
  const data = join(dir, 'data')
  const made = ['-D', data, '-U', 'penstock', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  await promisify(execFile)(join(bin, 'initdb'), made, as)
  const port = await freePort()
  const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${dir}`, 'fsync=off']
  const child = spawn(
    join(bin, 'postgres'),
    ['-D', data, '-p', `${port}`, ...settings.flatMap((setting) => ['-c', setting])],
    { ...as, stdio: 'ignore' },
  )
  const kill = () => child.kill('SIGQUIT')
  process.once('exit', kill)
  const base = `postgres://penstock@127.0.0.1:${port}`
  const sql = postgres(`${base}/postgres`, { max: 1, onnotice: () => {} })
  await eventually(() => sql`SELECT 1`, { timeoutMs: 20_000 })
  return {
    url: `${base}/penstock`,
    async renew() {
      await sql`DROP DATABASE IF EXISTS penstock WITH (FORCE)`
      await sql`CREATE DATABASE penstock`
    },
    async stop() {
      await sql.end()
      child.kill('SIGINT')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      process.off('exit', kill)
    },
  }
}
