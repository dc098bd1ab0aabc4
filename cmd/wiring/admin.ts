/** The admin role: the management API over its use cases. */
import { randomUUID } from 'node:crypto'
import type { Router } from '@koa/router'
import { createCustomers } from '../../internal/accounts/customers.ts'
import { createProjects } from '../../internal/accounts/projects.ts'
import { type ApiKeys, createApiKeys } from '../../internal/auth/api-keys.ts'
import { createKeyAuthentication } from '../../internal/auth/authentication.ts'
import { createCredits } from '../../internal/billing/credits.ts'
import { createBuffers } from '../../internal/buffers/buffers.ts'
import { checkDestination } from '../../internal/delivery/addresses.ts'
import { createDeadLetterQueue } from '../../internal/dlq/dead-letters.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import { mountRoutes } from '../../internal/http/routes/mount.ts'
import { adminTable } from '../../internal/http/routes/table.ts'
import { createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import { createBufferStore } from '../../internal/postgres/buffers.ts'
import { createCreditAccounts } from '../../internal/postgres/credits.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { createProjectStore } from '../../internal/postgres/projects.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import type { Node, Store } from './foundation.ts'

export interface Admin {
  readonly router: Router
  readonly apiKeys: ApiKeys
}

/** `credited`: the balance of a customer was raised; the ledger of the same node refuses no longer. */
export function createAdmin(node: Node, store: Store, credited: (customerId: string) => void): Admin {
  const { config, clock } = node
  const { db, box, buffers: records, keys } = store
  const customers = createCustomers({
    customers: createCustomerStore(db),
    initialCredits: config.initialCredits,
  })
  const apiKeys = createApiKeys({
    keys: createApiKeyStore(db),
    forget: keys.changed,
    ensureCustomer: customers.ensure,
    randomness: systemRandomness(),
    newKeyId: randomUUID,
  })
  const table = adminTable({
    customers,
    projects: createProjects({ projects: createProjectStore(db) }),
    buffers: createBuffers({
      buffers: createBufferStore(db, box),
      records,
      checkDestination: (url) => checkDestination(url, config.allowDestinations),
      newUid: randomUUID,
    }),
    apiKeys,
    credits: createCredits({ accounts: createCreditAccounts(db), local: config.local, credited }),
    deadLetters: createDeadLetterQueue({ store: createDeadLetterStore(db) }),
    local: config.local,
  })
  const authenticator = {
    ...createKeyAuthentication(keys),
    byToken: () => Promise.reject(new ServiceError('tokenInvalid')),
  }
  return { router: mountRoutes(table, { authenticator, clock }), apiKeys }
}
