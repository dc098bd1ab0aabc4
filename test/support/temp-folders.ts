/**
 * Temporary folders of one test process: `penstock-test-<pid>-…`. They go with the process; what a killed one
 * left is removed by the next, its servers first.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { isRunning } from '../../internal/embedded/process-identity.ts'
import { stopOrphans } from '../../internal/embedded/server-process.ts'

const PREFIX = 'penstock-test-'
const made = new Set<string>()

/** A new empty folder, removed at the end of the run. Others may pass through it: Postgres runs as its own user. */
export function tempFolder(label = 'folder'): string {
  const folder = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-${label}-`))
  chmodSync(folder, 0o711)
  made.add(folder)
  return folder
}

export function removeTempFolders(): void {
  for (const folder of made) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  made.clear()
}

/** Stops the servers and removes the folders of test processes that run no more. */
export async function sweepLeftovers(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1])
    if (!Number.isInteger(pid) || isRunning(pid)) continue
    // Another run may be sweeping the same folder away.
    await sweep(join(tmpdir(), name)).catch(() => {})
  }
}

/** What `SmallDisk` mounts, also of a process that was killed; nothing where nothing is mounted. */
export function unmount(folder: string): void {
  spawnSync('umount', ['-l', folder], { stdio: 'ignore' })
}

async function sweep(folder: string): Promise<void> {
  for (const option of ['--env-file=', '-c ', '-D ', '--pgdata=', 'server.path='])
    await stopOrphans(`${option}${folder}/`, [])
  unmount(folder)
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
