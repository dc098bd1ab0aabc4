/**
 * The data folder of one installation. One process at a time works in it; what is secret in it is readable
 * by its owner alone (docs/architecture/protocol.md, "The local instance").
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { messageOf } from '../runtime/thrown.ts'
import { EmbeddedStartError } from './ports.ts'

export interface DataFolder {
  /** Absolute, without symbolic links. */
  readonly path: string
  /** Gives the folder up to the next process. */
  release(): void
}

/** What SQLite answers where another process holds the lock of the file. */
const SQLITE_BUSY = 5

/** The locks of this process. One that nobody holds on to would be closed, and so given up, when memory is cleaned. */
const locks = new Set<DatabaseSync>()

/**
 * Creates the folder when absent and locks it. The lock is one of the operating system: it ends with the process,
 * however that ends, and it holds between containers that share the folder and not their process ids. Throws
 * EmbeddedStartError when another process holds it.
 */
export function openDataFolder(path: string): DataFolder {
  const folder = prepareFolder(path)
  const holder = join(folder, 'lock.holder')
  const lock = takeLock(folder, holder)
  // For the message of those that are refused; it says nothing about the lock itself.
  writeFileSync(holder, `process ${process.pid} on ${hostname()}`, { mode: 0o600 })
  const release = () => {
    locks.delete(lock)
    lock.close()
  }
  return { path: folder, release }
}

/**
 * Node has no call for a file lock. SQLite holds one while its transaction is exclusive: nothing is ever written, and the
 * file stays empty. It is never removed, because a lock on a removed file would not be seen. SQLite alone opens it: a process
 * that closes a file gives up all its locks on that file (fcntl(2), "Advisory record locking").
 */
function takeLock(folder: string, holder: string): DatabaseSync {
  const file = join(folder, 'lock.sqlite')
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(file)
    lock.exec('BEGIN EXCLUSIVE')
    chmodSync(file, 0o600)
    locks.add(lock)
    return lock
  } catch (error) {
    lock?.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY)
      throw new EmbeddedStartError(`the data folder ${folder} is in use by ${readHolder(holder)}`)
    throw new EmbeddedStartError(`the data folder ${folder} cannot be locked: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

function readHolder(holder: string): string {
  return existsSync(holder) ? readFileSync(holder, 'utf8') : 'another process'
}

/**
 * The folder, created when absent, closed to others; returns its real path. As root others may pass through
 * it (not list it): Postgres refuses to be root and must reach its own folder inside.
 */
export function prepareFolder(path: string): string {
  try {
    makeFolder(resolve(path))
    chmodSync(path, process.getuid?.() === 0 ? 0o711 : 0o700)
    return realpathSync(path)
  } catch (error) {
    throw new EmbeddedStartError(`the folder ${path} cannot be used: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** Level by level: Node's own recursive mkdir never returns on file systems that take no folders, such as /proc. */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  mkdirSync(path)
}

/** The text of a 0600 file, made by `create` when the file is absent: written whole or not at all. */
export function secretFile(path: string, create: () => string): string {
  if (!existsSync(path)) {
    const draft = `${path}.${process.pid}.new`
    writeFileSync(draft, `${create()}\n`, { mode: 0o600, flush: true })
    renameSync(draft, path)
  }
  return readFileSync(path, 'utf8').trim()
}
