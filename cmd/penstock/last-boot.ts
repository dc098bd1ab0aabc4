/**
 * The boot of the last process on this data folder. The folder has one process at a time, so when another one
 * starts there, the last is gone: what it had charged and not settled is refunded (design, section 7).
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** UUID of the last boot, undefined at the first start. */
export function lastBoot(dataDir: string): string | undefined {
  const file = join(dataDir, 'boot')
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
}

/** To be called after the last boot was closed and before this one charges. */
export function rememberBoot(dataDir: string, boot: string): void {
  const file = join(dataDir, 'boot')
  writeFileSync(`${file}.new`, `${boot}\n`, { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
}
