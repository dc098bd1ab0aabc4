/**
 * `npm run account -- <customerId>`: a new owner key of an existing or new customer, printed once
 * (docs/architecture/protocol.md, "Accounts").
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { createCustomers } from '../../internal/accounts/customers.ts'
import { createApiKeys } from '../../internal/auth/api-keys.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import { addressIn } from '../../internal/embedded/postgres-server.ts'
import { createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import { readConfig } from '../config/config.ts'

async function createKey(customerId: string): Promise<string> {
  const config = readConfig(process.env, 'penstock')
  const databaseUrl = config.databaseUrl ?? addressIn(join(config.dataDir, 'postgres'))
  if (databaseUrl === undefined) {
    throw new Error(`no database in ${config.dataDir}: start Penstock first, or set PENSTOCK_DATABASE_URL`)
  }
  const db = connect(databaseUrl, { max: 1 })
  try {
    const customers = createCustomers({
      customers: createCustomerStore(db),
      initialCredits: config.initialCredits,
    })
    const apiKeys = createApiKeys({
      keys: createApiKeyStore(db),
      // Other processes read a new key when it is first used: there is no cache here to tell.
      forget: () => {},
      ensureCustomer: customers.ensure,
      randomness: systemRandomness(),
      newKeyId: randomUUID,
    })
    return (await apiKeys.createOwnerKey(customerId)).secret
  } finally {
    await db.end({ timeout: 2 })
  }
}

const [customerId, ...rest] = process.argv.slice(2)
if (customerId === undefined || rest.length > 0) {
  process.stderr.write('usage: npm run account -- <customerId>\n')
  process.exitCode = 2
} else {
  try {
    process.stdout.write(`${await createKey(customerId)}\n`)
  } catch (error) {
    const text = error instanceof ServiceError ? error.body.error : (error as Error).message
    process.stderr.write(`${text}\n`)
    process.exitCode = 1
  }
}
