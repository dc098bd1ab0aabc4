/**
 * The data folder of one installation. One process at a time works in it; what is secret in it is readable
 * by its owner alone (docs/architecture/protocol.md, "The local instance").
 */
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'

import { EmbeddedStartError } from './ports.ts'
import { startMark } from './process-identity.ts'

export interface DataFolder {
  /** Absolute, without symbolic links. */
  readonly path: string
  /** Gives the folder up to the next process. */
  release(): void
}

/**
 * Creates the folder when absent and takes its lock. A lock whose process is gone (also: whose id belongs to
 * another process by now) is taken over. Throws EmbeddedStartError when another process holds it.
 */
export function openDataFolder(path: string): DataFolder {
  const folder = prepareFolder(path)
  const lock = join(folder, 'lock')
  const mine = JSON.stringify({
    pid: process.pid,
    started: startMark(process.pid),
    nonce: randomBytes(8).toString('hex'),
  })
  while (!createLock(lock, mine)) {
    const holder = readLock(lock)
    if (holder === undefined) continue
    if (holder.alive) {
      throw new EmbeddedStartError(`the data folder ${folder} is in use by process ${holder.pid}`)
    }
    removeStale(lock, holder.text)
  }
  return {
    path: folder,
    release: () => {
      if (readLock(lock)?.text === mine) rmSync(lock, { force: true })
    },
  }
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

/** A file appears under its name only with its whole content: a link, unlike an exclusive create. */
function createLock(lock: string, text: string): boolean {
  const draft = `${lock}.${process.pid}.new`
  writeFileSync(draft, text, { mode: 0o600 })
  try {
    linkSync(draft, lock)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

function readLock(lock: string): { text: string; pid: number; alive: boolean } | undefined {
  try {
    const text = readFileSync(lock, 'utf8')
    const { pid, started } = JSON.parse(text) as { pid: number; started: string }
    return { text, pid, alive: started !== undefined && startMark(pid) === started }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new EmbeddedStartError(`the lock file ${lock} is not readable: ${String(error)}`)
  }
}

/** Two starts may find the same stale lock: whoever moved the other's fresh one away puts it back. */
function removeStale(lock: string, stale: string): void {
  const aside = `${lock}.${process.pid}.stale`
  try {
    renameSync(lock, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  if (readFileSync(aside, 'utf8') !== stale) createLock(lock, readFileSync(aside, 'utf8'))
  rmSync(aside, { force: true })
}
