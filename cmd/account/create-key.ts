/** A new owner key of an existing or new customer. */
import { randomUUID } from 'node:crypto'
import { createCustomers } from '../../internal/accounts/customers.ts'
import { createApiKeys } from '../../internal/auth/api-keys.ts'
import type { Creator } from '../../internal/domain/model.ts'
import { createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import type { Config } from '../config/config.ts'
import { recordCommand } from '../wiring/command-audit.ts'

const OPTIONS: Record<Creator, string> = { 'take-over': '--take-over', keep: '--keep-creator' }

/** Its secret. Throws 400 for a bad id, and an error when another customer created it and `creator` does not say what becomes of that. */
export async function createKey(
  db: Database,
  { initialCredits }: Pick<Config, 'initialCredits'>,
  customerId: string,
  creator?: Creator,
): Promise<string> {
  const customers = createCustomers({ customers: createCustomerStore(db), initialCredits })
  const apiKeys = createApiKeys({
    keys: createApiKeyStore(db),
    // Other processes read a new key when it is first used: there is no cache here to tell.
    forget: () => {},
    ensureCustomer: customers.ensure,
    randomness: systemRandomness(),
    newKeyId: randomUUID,
  })
  const { keyId, secret } = await apiKeys.createOwnerKey(customerId, creator)
  const command = creator === undefined ? 'npm run account' : `npm run account -- ${OPTIONS[creator]}`
  await recordCommand(db, { customerId, command, target: { keyId } })
  return secret
}
