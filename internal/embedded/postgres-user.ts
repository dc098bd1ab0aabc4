/**
 * Postgres refuses to run as root. As root it runs as the user `postgres`, made when absent, and must reach
 * its binaries and its data although the folders above may be closed to others.
 */
import { spawnSync } from 'node:child_process'
import { chownSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { EmbeddedStartError } from './ports.ts'
import type { Launch } from './server-process.ts'

const NAME = 'postgres'

export interface PostgresUser {
  uid: number
  gid: number
}

/** undefined: we are no root, Postgres runs as we do. Throws EmbeddedStartError when no such user can be had. */
export function postgresUser(): PostgresUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  if (lookUp('-u') === undefined) run('useradd', ['--system', '--user-group', '--no-create-home', NAME])
  const [uid, gid] = [lookUp('-u'), lookUp('-g')]
  if (uid === undefined || gid === undefined) {
    throw new EmbeddedStartError(
      `Postgres does not run as root, and there is no user ${NAME}: create one, or set PENSTOCK_DATABASE_URL`,
    )
  }
  return { uid, gid }
}

/** Gives a folder and what is in it to the user, unless it is theirs. */
export function giveTo(user: PostgresUser | undefined, path: string): void {
  if (user === undefined) return
  const stat = statSync(path)
  if (stat.uid === user.uid && stat.gid === user.gid) return
  chownSync(path, user.uid, user.gid)
  if (!stat.isDirectory()) return
  for (const entry of readdirSync(path)) giveTo(user, join(path, entry))
}

/**
 * How to run a command as the user. Where a folder on the way to `paths` is closed to them, the process
 * keeps the one capability of passing through folders (CAP_DAC_READ_SEARCH), so that nobody's folders have
 * to be opened up. Throws EmbeddedStartError, naming the folder, where that cannot be done.
 */
export function runAs(
  user: PostgresUser | undefined,
  command: string,
  args: string[],
  paths: string[],
): Pick<Launch, 'command' | 'args' | 'uid' | 'gid'> {
  if (user === undefined) return { command, args }
  const closed = paths.map((path) => closedFolder(user, path)).find((path) => path !== undefined)
  if (closed === undefined) return { command, args, uid: user.uid, gid: user.gid }
  if (!run('setpriv', [...capable(user), 'true'])) {
    throw new EmbeddedStartError(
      `Postgres runs as user ${NAME}, which cannot pass through ${closed}: chmod o+x it, move the data folder or the installation, or set PENSTOCK_DATABASE_URL`,
    )
  }
  return { command: 'setpriv', args: [...capable(user), command, ...args] }
}

function capable(user: PostgresUser): string[] {
  // Without the secure bit access(2), which Postgres asks about its own binaries, would ignore the capability.
  const identity = [
    '--securebits=+no_setuid_fixup',
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    '--clear-groups',
  ]
  return [...identity, '--inh-caps=-all,+dac_read_search', '--ambient-caps=-all,+dac_read_search']
}

/** The first folder from the top, down to that of `path`, that the user may not pass through. */
export function closedFolder(user: PostgresUser, path: string): string | undefined {
  const above = dirname(path)
  const closed = above === path ? undefined : closedFolder(user, above)
  if (closed !== undefined) return closed
  const stat = statSync(path)
  if (!stat.isDirectory()) return undefined
  const mine = stat.uid === user.uid ? 0o100 : stat.gid === user.gid ? 0o010 : 0o001
  return (stat.mode & mine) === 0 ? path : undefined
}

function lookUp(column: '-u' | '-g'): number | undefined {
  const { status, stdout } = spawnSync('id', [column, NAME], { encoding: 'utf8' })
  return status === 0 ? Number(stdout) : undefined
}

function run(command: string, args: string[]): boolean {
  return spawnSync(command, args).status === 0
}
