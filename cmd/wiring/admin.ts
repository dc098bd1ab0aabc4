/** The admin role: the management API over its use cases. */
import { randomUUID } from 'node:crypto'
import type { Router } from '@koa/router'
import { createCustomers } from '../../internal/accounts/customers.ts'
import { createProjects } from '../../internal/accounts/projects.ts'
import { createAnalytics } from '../../internal/analytics/analytics.ts'
import { createAuditReading } from '../../internal/audit/reading.ts'
import type { AuditTrail } from '../../internal/audit/trail.ts'
import { type ApiKeys, createApiKeys } from '../../internal/auth/api-keys.ts'
import type { PaymentProvider } from '../../internal/billing/ports.ts'
import { createBuffers } from '../../internal/buffers/buffers.ts'
import { BufferStatesReading } from '../../internal/buffers/states.ts'
import { createTestDelivery } from '../../internal/buffers/test-delivery.ts'
import { checkDestination } from '../../internal/delivery/addresses.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import { createDeadLetterQueue } from '../../internal/dlq/dead-letters.ts'
import { createDeadLetterRetry } from '../../internal/dlq/retry.ts'
import type { BodyShares } from '../../internal/http/body-shares.ts'
import type { HttpTelemetry } from '../../internal/http/ports.ts'
import { mountRoutes } from '../../internal/http/routes/mount.ts'
import { adminTable } from '../../internal/http/routes/table.ts'
import { createAnalyticsStore } from '../../internal/postgres/analytics.ts'
import { createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import { createAuditStore } from '../../internal/postgres/audit.ts'
import { createStateStore } from '../../internal/postgres/buffer-states.ts'
import { createBufferStore } from '../../internal/postgres/buffers.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { createRetryStore } from '../../internal/postgres/dlq-retries.ts'
import { isOutage } from '../../internal/postgres/outage.ts'
import { createProjectStore } from '../../internal/postgres/projects.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import { createAuthenticator } from './authentication.ts'
import { createBilling } from './billing.ts'
import type { Node, Store } from './foundation.ts'
import { createTenantLimits } from './limits.ts'
import { type LedgerOfNode, reportedCustomers } from './reported.ts'

export interface Admin {
  readonly router: Router
  readonly apiKeys: ApiKeys
}

export function createAdmin(
  node: Node,
  store: Store,
  deliveries: DeliveryClient,
  ledger: LedgerOfNode,
  http: { bodies: BodyShares; telemetry: HttpTelemetry; audit: AuditTrail },
  /** undefined: what needs one answers 503. */
  provider: PaymentProvider | undefined,
): Admin {
  const { config, clock, log } = node
  const random = systemRandomness()
  const { db, box, buffers: records, bufferChanges, keys } = store
  const { requests, tests, signUps, caps } = createTenantLimits(config, clock, http.telemetry)
  const customers = createCustomers({
    customers: reportedCustomers(ledger, createCustomerStore(db, caps)),
    initialCredits: config.initialCredits,
  })
  const apiKeys = createApiKeys({
    keys: createApiKeyStore(db),
    forget: keys.changed,
    ensureCustomer: customers.ensure,
    randomness: random,
    newKeyId: randomUUID,
  })
  const billing = createBilling({ db, clock, local: config.local, provider, ledger })
  const buffers = createBufferStore(db, box, caps)
  const deadLetters = createDeadLetterStore(db)
  const table = adminTable({
    ...billing,
    customers,
    projects: createProjects({ projects: createProjectStore(db, caps) }),
    buffers: {
      ...createBuffers({
        buffers,
        records,
        newUid: randomUUID,
        onShortSecrets: (found) => log.warn(found, 'a secret is short'),
        checkDestination: (url) => checkDestination(url, config.allowDestinations, config.destinationPorts),
      }),
      ...createTestDelivery({ buffers, deliveries, clock, newId: randomUUID, ...tests }),
    },
    bufferStates: new BufferStatesReading({ store: createStateStore(db), changes: bufferChanges, clock }),
    apiKeys,
    audit: createAuditReading({ store: createAuditStore(db) }),
    deadLetters: {
      ...createDeadLetterQueue({ store: deadLetters }),
      ...createDeadLetterRetry({
        store: deadLetters,
        retries: createRetryStore(db, box),
        deliveries,
        clock,
        telemetry: {
          retry: ({ dlqId, bufferId, items, delivered, statusCode, error, durationMs }) =>
            log.info({ dlqId, bufferId, items, delivered, statusCode, error, durationMs }, 'retry'),
        },
      }),
    },
    analytics: createAnalytics({ store: createAnalyticsStore(db), clock }),
    local: config.local,
  })
  const { bodies, audit } = http
  const authenticator = createAuthenticator(node, store, signUps, audit)
  const router = mountRoutes(table, {
    authenticator,
    limits: requests,
    clock,
    random,
    bodies,
    audit,
    isOutage,
  })
  return { router, apiKeys }
}
