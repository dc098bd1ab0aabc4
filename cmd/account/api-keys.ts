/** API keys as the command changes them: beside the running service, in its database. */
import { randomUUID } from 'node:crypto'
import { createCustomers } from '../../internal/accounts/customers.ts'
import { type ApiKeys, createApiKeys } from '../../internal/auth/api-keys.ts'
import { createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'

/** `initialCredits`: of a customer that has to be created. */
export function apiKeysOf(db: Database, initialCredits: number): ApiKeys {
  const customers = createCustomers({ customers: createCustomerStore(db), initialCredits })
  return createApiKeys({
    keys: createApiKeyStore(db),
    // There is no cache here to tell: other processes read a new key when it is first used, and the feed names revoked ones.
    forget: () => {},
    ensureCustomer: customers.ensure,
    randomness: systemRandomness(),
    newKeyId: randomUUID,
  })
}
