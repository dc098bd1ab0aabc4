/** Secrets that the local instance makes at its first start and keeps in its data folder, 0600. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { secretFile } from '../../internal/embedded/data-folder.ts'
import { parseSecretKeys, type SecretKey } from '../../internal/postgres/secrets.ts'

/** The key that encrypts secrets at rest: generated once; throws when the file was damaged. */
export function ownSecretKey(dataDir: string): SecretKey[] {
  const parsed = parseSecretKeys(secretKeyText(dataDir))
  if (!parsed.ok) throw new Error(`${secretKeyFile(dataDir)}: ${parsed.error}`)
  return parsed.value
}

/** The key of a data folder that was started before; undefined: there is none. Throws when the file was damaged. */
export function storedSecretKey(dataDir: string): SecretKey[] | undefined {
  return existsSync(secretKeyFile(dataDir)) ? ownSecretKey(dataDir) : undefined
}

/** The same as a value of PENSTOCK_SECRET_KEY. */
export function secretKeyText(dataDir: string): string {
  return secretFile(secretKeyFile(dataDir), () => randomBytes(32).toString('base64'))
}

function secretKeyFile(dataDir: string): string {
  return join(dataDir, 'secret-key')
}

/** See `leaveOwnerKey`. */
export function ownerKeyFile(dataDir: string): string {
  return join(dataDir, 'owner-key')
}

/** Where the owner key of the first start is left when nobody watches; answers the path. */
export function leaveOwnerKey(dataDir: string, secret: string): string {
  const file = ownerKeyFile(dataDir)
  secretFile(file, () => secret)
  return file
}
