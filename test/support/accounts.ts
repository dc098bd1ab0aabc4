/** Customers, projects, buffers and keys on a database of the test's own, wired as a node wires them. */
import { randomBytes, randomUUID } from 'node:crypto'
import { createCustomers } from '../../internal/accounts/customers.ts'
import { createProjects } from '../../internal/accounts/projects.ts'
import { createApiKeys } from '../../internal/auth/api-keys.ts'
import { createKeyCache } from '../../internal/auth/key-cache.ts'
import { createBuffers } from '../../internal/buffers/buffers.ts'
import { createBufferCache } from '../../internal/buffers/cache.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { createApiKeyRows, createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import { createBufferRows, createBufferStore } from '../../internal/postgres/buffers.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { createProjectStore } from '../../internal/postgres/projects.ts'
import { createSecretBox } from '../../internal/postgres/secrets.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import { freshDatabase } from './servers.ts'

export const INITIAL_CREDITS = 500

/** The smallest body that creates a buffer. */
export function bufferBody(bufferId: string, projectId: string, more: object = {}): object {
  return {
    bufferId,
    projectId,
    name: 'Orders',
    groupKey: { mode: 'jsonpath', path: '$.customer' },
    delivery: { url: 'https://example.com/hook' },
    ...more,
  }
}

export function principal(customerId: string, more: Partial<Principal> = {}): Principal {
  return { customerId, role: 'owner', via: 'key', ...more }
}

const encryptionKey = randomBytes(32)

/** One node: its pool, caches and use cases. Give the URL of another node's database for a second one. */
export async function accountsNode(databaseUrl?: string) {
  const url = databaseUrl ?? (await freshDatabase())
  const clock = systemClock()
  const db = connect(url, { max: 8 })
  const box = createSecretBox([{ id: 'test', key: encryptionKey }])
  const errors: unknown[] = []
  const shortSecrets: unknown[] = []
  const bufferCache = createBufferCache({ rows: createBufferRows(db, box), clock })
  const keyCache = createKeyCache({
    rows: createApiKeyRows(db),
    clock,
    onError: (error) => errors.push(error),
  })
  const customers = createCustomers({ customers: createCustomerStore(db), initialCredits: INITIAL_CREDITS })
  return {
    url,
    db,
    clock,
    box,
    bufferCache,
    keyCache,
    /** What the node would have logged. */
    errors,
    shortSecrets,
    customers,
    projects: createProjects({ projects: createProjectStore(db) }),
    buffers: createBuffers({
      buffers: createBufferStore(db, box),
      records: bufferCache,
      checkDestination: (destination) => (destination.includes('blocked') ? 'it is blocked' : null),
      newUid: randomUUID,
      onShortSecrets: (found) => shortSecrets.push(found),
    }),
    apiKeys: createApiKeys({
      keys: createApiKeyStore(db),
      forget: keyCache.changed,
      ensureCustomer: customers.ensure,
      randomness: systemRandomness(),
      newKeyId: randomUUID,
    }),
    async close() {
      await keyCache.stop()
      await db.end({ timeout: 5 })
    },
  }
}

export type AccountsNode = Awaited<ReturnType<typeof accountsNode>>

/** Status and text of the refusal that `work` ends with; throws when it does not. */
export async function refusal(work: Promise<unknown>): Promise<{ status: number; error: string }> {
  const error = await work.then(
    () => new Error('it was not refused'),
    (reason) => reason,
  )
  if (error.name !== 'ServiceError') throw error
  return { status: error.status, error: error.body.error }
}
