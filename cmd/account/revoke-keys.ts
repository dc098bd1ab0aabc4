/** Revokes all active keys of a customer, and says how many there were. */
import type { Database } from '../../internal/postgres/connection.ts'
import type { Config } from '../config/config.ts'
import { recordCommand } from '../wiring/command-audit.ts'
import { apiKeysOf } from './api-keys.ts'

/** One line. Throws 400 for a bad id, 404 for an unknown customer. */
export async function revokeKeys(
  db: Database,
  { initialCredits }: Pick<Config, 'initialCredits'>,
  customerId: string,
): Promise<string> {
  const keyIds = await apiKeysOf(db, initialCredits).revokeAll(customerId)
  const command = 'npm run account -- --revoke-keys'
  for (const keyId of keyIds) await recordCommand(db, { customerId, command, target: { keyId } })
  return `${customerId}: ${keyIds.length} ${keyIds.length === 1 ? 'key' : 'keys'} revoked`
}
