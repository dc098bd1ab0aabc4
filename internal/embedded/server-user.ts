/**
 * No server that we bring along runs as root: Postgres refuses to, and NATS needs nothing of it. Where we are root, each
 * runs as a user of its own, made when absent, and must reach its binaries and its data although the folders above may be
 * closed to others.
 */
import { spawnSync } from 'node:child_process'
import { lchownSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { EmbeddedStartError } from './ports.ts'
import type { Launch } from './server-process.ts'

/** A server that does not run as root. */
export interface Rootless {
  readonly server: string
  /** Of its user. */
  readonly name: string
  /** The variable that leads to a server of others. */
  readonly instead: string
}

export const POSTGRES: Rootless = { server: 'Postgres', name: 'postgres', instead: 'PENSTOCK_DATABASE_URL' }
export const NATS: Rootless = { server: 'NATS', name: 'nats', instead: 'PENSTOCK_NATS_URL' }

export interface ServerUser extends Rootless {
  readonly uid: number
  readonly gid: number
}

/** undefined: we are no root, it runs as we do. Throws EmbeddedStartError when no such user can be had. */
export function userOf(rootless: Rootless): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  const { server, name, instead } = rootless
  if (lookUp(name, '-u') === undefined) run('useradd', ['--system', '--user-group', '--no-create-home', name])
  const [uid, gid] = [lookUp(name, '-u'), lookUp(name, '-g')]
  if (uid === undefined || gid === undefined) {
    throw new EmbeddedStartError(
      `${server} does not run as root, and there is no user ${name}: create one, or set ${instead}`,
    )
  }
  return { ...rootless, uid, gid }
}

/** What such a server is told of our environment: no variable with a secret of ours, and no locale for its messages. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C' }
}

/**
 * Gives a file, or a folder and all that is in it, to the user: a backup may have been copied back by root. Links are
 * not followed, or their owner could have any file of the machine.
 */
export function giveTo(user: ServerUser | undefined, path: string): void {
  if (user === undefined) return
  const stat = lstatSync(path)
  if (stat.uid !== user.uid || stat.gid !== user.gid) lchownSync(path, user.uid, user.gid)
  if (!stat.isDirectory()) return
  for (const entry of readdirSync(path)) giveTo(user, join(path, entry))
}

/**
 * How to run a command as the user. Where a folder on the way to `paths` is closed to them, the process
 * keeps the one capability of passing through folders (CAP_DAC_READ_SEARCH), so that nobody's folders have
 * to be opened up. Throws EmbeddedStartError, naming the folder, where that cannot be done.
 */
export function runAs(
  user: ServerUser | undefined,
  command: string,
  args: string[],
  paths: string[],
): Pick<Launch, 'command' | 'args' | 'uid' | 'gid'> {
  if (user === undefined) return { command, args }
  const closed = paths.map((path) => closedFolder(user, path)).find((path) => path !== undefined)
  if (closed === undefined) return { command, args, uid: user.uid, gid: user.gid }
  if (!run('setpriv', [...capable(user), 'true'])) {
    throw new EmbeddedStartError(
      `${user.server} runs as user ${user.name}, which cannot pass through ${closed}: chmod o+x it, move the data folder or the installation, or set ${user.instead}`,
    )
  }
  return { command: 'setpriv', args: [...capable(user), command, ...args] }
}

/** The same as words of a command line, for somebody who is what we are. */
export function wordsAs(user: ServerUser | undefined, command: string, args: string[]): string[] {
  return user === undefined ? [command, ...args] : ['setpriv', ...capable(user), command, ...args]
}

function capable(user: ServerUser): string[] {
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
export function closedFolder(user: ServerUser, path: string): string | undefined {
  const above = dirname(path)
  const closed = above === path ? undefined : closedFolder(user, above)
  if (closed !== undefined) return closed
  const stat = statSync(path)
  if (!stat.isDirectory()) return undefined
  const mine = stat.uid === user.uid ? 0o100 : stat.gid === user.gid ? 0o010 : 0o001
  return (stat.mode & mine) === 0 ? path : undefined
}

function lookUp(name: string, column: '-u' | '-g'): number | undefined {
  const { status, stdout } = spawnSync('id', [column, name], { encoding: 'utf8' })
  return status === 0 ? Number(stdout) : undefined
}

function run(command: string, args: string[]): boolean {
  return spawnSync(command, args).status === 0
}
