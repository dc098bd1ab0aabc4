/**
 * The boots of earlier processes on this data folder. The folder has one process at a time, so when another one
 * starts there, they are gone for certain: what they had charged and not settled is refunded
 * (docs/architecture/protocol.md, "Unsettled credits"), and their shards need no time-out.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** One that was killed before it claimed a shard leaves it to the one before it, and so on: some are kept. */
const KEPT = 50

/** UUIDs, newest first; none at the first start. */
export function lastBoots(dataDir: string): string[] {
  const file = join(dataDir, 'boot')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
}

/** To be called after the last boots were closed and before this one charges. */
export function rememberBoot(dataDir: string, boot: string): void {
  const file = join(dataDir, 'boot')
  const boots = [boot, ...lastBoots(dataDir)].slice(0, KEPT)
  writeFileSync(`${file}.new`, `${boots.join('\n')}\n`, { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
}
