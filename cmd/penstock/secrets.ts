/** Secrets that the local instance makes at its first start and keeps in its data folder, 0600. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { secretFile } from '../../internal/embedded/data-folder.ts'
import { parseSecretKeys, type SecretKey } from '../../internal/postgres/secrets.ts'

/** The key that encrypts secrets at rest: generated once; throws when the file was damaged. */
export function ownSecretKey(dataDir: string): SecretKey[] {
  const file = join(dataDir, 'secret-key')
  const parsed = parseSecretKeys(secretFile(file, () => randomBytes(32).toString('base64')))
  if (!parsed.ok) throw new Error(`${file}: ${parsed.error}`)
  return parsed.value
}

/** Where the owner key of the first start is left when nobody watches; answers the path. */
export function leaveOwnerKey(dataDir: string, secret: string): string {
  const file = join(dataDir, 'owner-key')
  secretFile(file, () => secret)
  return file
}
