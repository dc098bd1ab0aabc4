/** A new owner key of an existing or new customer. */
import type { Creator } from '../../internal/domain/model.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import type { Config } from '../config/config.ts'
import { recordCommand } from '../wiring/command-audit.ts'
import { apiKeysOf } from './api-keys.ts'

const OPTIONS: Record<Creator, string> = { 'take-over': '--take-over', keep: '--keep-creator' }

/** Its secret. Throws 400 for a bad id, and an error when another customer created it and `creator` does not say what becomes of that. */
export async function createKey(
  db: Database,
  { initialCredits }: Pick<Config, 'initialCredits'>,
  customerId: string,
  creator?: Creator,
): Promise<string> {
  const { keyId, secret } = await apiKeysOf(db, initialCredits).createOwnerKey(customerId, creator)
  const command = creator === undefined ? 'npm run account' : `npm run account -- ${OPTIONS[creator]}`
  await recordCommand(db, { customerId, command, target: { keyId } })
  return secret
}
