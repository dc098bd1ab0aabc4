/** Secrets that the local instance makes at its first start and keeps in its data folder, 0600. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSecretKeys, type SecretKey } from '../../internal/postgres/secrets.ts'

const OWN_MODE = 0o600

/** The key that encrypts secrets at rest: generated once; throws when the file was damaged. */
export function ownSecretKey(dataDir: string): SecretKey[] {
  const file = join(dataDir, 'secret-key')
  if (!existsSync(file)) writeWhole(file, `${randomBytes(32).toString('base64')}\n`)
  const parsed = parseSecretKeys(readFileSync(file, 'utf8').trim())
  if (!parsed.ok) throw new Error(`${file}: ${parsed.error}`)
  return parsed.value
}

/** Where the owner key of the first start is left when nobody watches; answers the path. */
export function leaveOwnerKey(dataDir: string, secret: string): string {
  const file = join(dataDir, 'owner-key')
  writeWhole(file, `${secret}\n`)
  return file
}

/** All or nothing, also when the process dies in between. */
function writeWhole(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: OWN_MODE, flush: true })
  renameSync(`${file}.new`, file)
}
