/** Secrets that the local instance makes at its first start and keeps in its data folder, 0600. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SECRET_BYTES, secretOf } from '../../internal/auth/secret.ts'
import { secretFile } from '../../internal/embedded/data-folder.ts'
import { parseSecretKeys, type SecretKey } from '../../internal/postgres/secrets.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'

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

/** Where the owner key of the customer `local` is left. */
export function ownerKeyFile(dataDir: string): string {
  return join(dataDir, 'owner-key')
}

/** The key in `file`, which is made when it is absent. */
export function leaveOwnerKey(file: string): string {
  return secretFile(file, () => secretOf(systemRandomness().bytes(SECRET_BYTES)))
}
