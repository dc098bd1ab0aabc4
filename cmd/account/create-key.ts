/** A new owner key of an existing or new customer. */
import { randomUUID } from 'node:crypto'
import { createCustomers } from '../../internal/accounts/customers.ts'
import { createApiKeys } from '../../internal/auth/api-keys.ts'
import { createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import type { Config } from '../config/config.ts'
import { recordCommand } from '../wiring/command-audit.ts'

/** Its secret. Throws 400 for a bad id. */
export async function createKey(
  db: Database,
  { initialCredits }: Pick<Config, 'initialCredits'>,
  customerId: string,
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
  const { keyId, secret } = await apiKeys.createOwnerKey(customerId)
  await recordCommand(db, { customerId, command: 'npm run account', target: { keyId } })
  return secret
}
