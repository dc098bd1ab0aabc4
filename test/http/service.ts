import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import { createBilling } from '../../cmd/wiring/billing.ts'
import { createTenantLimits, type LimitSettings } from '../../cmd/wiring/limits.ts'
import { reportedCustomers } from '../../cmd/wiring/reported.ts'
import { createCustomers } from '../../internal/accounts/customers.ts'
import { createProjects } from '../../internal/accounts/projects.ts'
import { createAnalytics } from '../../internal/analytics/analytics.ts'
import type { AuditLoss, AuditStore } from '../../internal/audit/ports.ts'
import { createAuditReading } from '../../internal/audit/reading.ts'
import { type AuditTrailOptions, createAuditTrail } from '../../internal/audit/trail.ts'
import { type ApiKeys, createApiKeys } from '../../internal/auth/api-keys.ts'
import { createKeyAuthentication } from '../../internal/auth/authentication.ts'
import { createKeyCache } from '../../internal/auth/key-cache.ts'
import { CreditLedger } from '../../internal/billing/ledger.ts'
import type { PaymentProvider } from '../../internal/billing/ports.ts'
import { createBuffers } from '../../internal/buffers/buffers.ts'
import { createBufferCache } from '../../internal/buffers/cache.ts'
import { BufferChanges } from '../../internal/buffers/changes.ts'
import { BufferStatesReading } from '../../internal/buffers/states.ts'
import { createTestDelivery } from '../../internal/buffers/test-delivery.ts'
import { parseCidr } from '../../internal/delivery/addresses.ts'
import { DeliveryClient } from '../../internal/delivery/client.ts'
import { Lookups } from '../../internal/delivery/dns/lookups.ts'
import { createDeadLetterQueue } from '../../internal/dlq/dead-letters.ts'
import { createDeadLetterRetry } from '../../internal/dlq/retry.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import { BodyShares } from '../../internal/http/body-shares.ts'
import { createHealth } from '../../internal/http/health.ts'
import { IngestRoute } from '../../internal/http/ingest.ts'
import { type Listener, type ListenerOptions, listen } from '../../internal/http/listener.ts'
import type { HttpTelemetry } from '../../internal/http/ports.ts'
import { Receiver } from '../../internal/http/receiver.ts'
import { mountRoutes } from '../../internal/http/routes/mount.ts'
import { adminTable } from '../../internal/http/routes/table.ts'
import { createHandler } from '../../internal/http/server.ts'
import { Ingest } from '../../internal/ingest/accept.ts'
import { type Holder, type IngestTelemetry, LedgerUnavailableError } from '../../internal/ingest/ports.ts'
import { createAnalyticsStore } from '../../internal/postgres/analytics.ts'
import { createApiKeyRows, createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import { createAuditStore } from '../../internal/postgres/audit.ts'
import { createStateStore, customersOfBuffers } from '../../internal/postgres/buffer-states.ts'
import { createBufferRows, createBufferStore } from '../../internal/postgres/buffers.ts'
import { createConfigFeed } from '../../internal/postgres/config-feed.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { createRetryStore } from '../../internal/postgres/dlq-retries.ts'
import { PostgresCreditStatements } from '../../internal/postgres/ledger.ts'
import { isOutage } from '../../internal/postgres/outage.ts'
import { createProjectStore } from '../../internal/postgres/projects.ts'
import { createSecretBox } from '../../internal/postgres/secrets.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import { freshDatabase } from '../support/servers.ts'
import { MemoryInbox } from './memory-inbox.ts'

/** The whole HTTP interface over a real Postgres; only the broker's place is taken by a `MemoryInbox`. */
export interface TestService {
  readonly url: string
  readonly port: number
  readonly listener: Listener
  readonly db: Database
  readonly databaseUrl: string
  readonly inbox: MemoryInbox
  readonly bodies: BodyShares
  readonly ledger: CreditLedger
  readonly apiKeys: ApiKeys
  /** What the telemetry ports were told. */
  readonly told: {
    failed: unknown[]
    answered: number[]
    late: string[]
    unavailable: string[]
    limited: string[]
    overShare: Holder[]
    /** Statuses of refusals besides those of ingest. */
    refused: number[]
    /** Place and credential of each failed authentication. */
    authentication: string[]
    /** Audit records by why they were lost. */
    lost: Partial<Record<AuditLoss, number>>
  }
  /** Owner key of the customer, made on the spot. */
  ownerKey(customerId: string): Promise<string>
  stop(): Promise<void>
}

export interface TestServiceOptions {
  databaseUrl?: string
  local?: boolean
  maxBodyBytes?: number
  /** Of all bodies together. Default: none. */
  maxBodiesBytes?: number
  initialCredits?: number
  /** Of the ledger, ms. Default: longer than any machine keeps it waiting for a Postgres that is there. */
  patienceMs?: number
  /** Default: none, as the service has it. */
  provider?: PaymentProvider
  /** Further routes. Default: none. */
  others?: readonly Middleware[]
  listener?: Partial<ListenerOptions>
  /** Of tenants. Default: none. */
  limits?: Partial<LimitSettings>
  /** Of those. Default: `clock`. */
  limitsClock?: Clock
  /** Default: the system's. */
  clock?: Clock
  /** In [0, 1): how late a request beyond its rate is answered. Default: at random. */
  fraction?: () => number
  /** Whether the caches follow the change feed. Default: they are told of this service's own changes alone. */
  feed?: boolean
  /** Default: Postgres. */
  auditStore?: Pick<AuditStore, 'insert'>
  /** Records of a customer. Default: the service's. */
  allowances?: Pick<AuditTrailOptions, 'changes' | 'refusals'>
}

const NO_LIMITS: LimitSettings = {
  keyRequestsPerSecond: 0,
  testsPerMinute: 0,
  signUpsPerMinute: 0,
  maxCustomers: 0,
  maxProjects: 0,
  maxBuffers: 0,
}
const LOOPBACK = [parseCidr('127.0.0.0/8')!]

export async function startService(options: TestServiceOptions = {}): Promise<TestService> {
  const { clock = systemClock() } = options
  const databaseUrl = options.databaseUrl ?? (await freshDatabase())
  const db = connect(databaseUrl, { max: 4 })
  const box = createSecretBox([{ id: 'test', key: new Uint8Array(32).fill(7) }])
  const cache = createBufferCache({ rows: createBufferRows(db, box), clock })
  const keys = createKeyCache({ rows: createApiKeyRows(db), clock, onError: fail })
  const bufferChanges = new BufferChanges({ customersOf: (uids) => customersOfBuffers(db, uids) })
  const feed = createConfigFeed({
    db,
    clock,
    listeners: [
      { entity: 'buffer', ...cache },
      {
        entity: 'buffer',
        changed: (uids) => bufferChanges.changed(uids),
        reset: () => bufferChanges.reset(),
      },
      { entity: 'api_key', ...keys },
      { entity: 'customer', changed: keys.customersChanged, reset: () => {} },
    ],
    onError: () => {},
  })
  if (options.feed) await feed.start()
  const statements = new PostgresCreditStatements({ open: () => connect(databaseUrl, { max: 4 }) })
  const ledger = new CreditLedger({
    boot: randomUUID(),
    statements,
    clock,
    unavailable: (message, cause) => new LedgerUnavailableError(message, { cause }),
    onClosed: () => fail(new Error('the ledger was closed by another node')),
    onProblem: () => {},
    patienceMs: options.patienceMs ?? 15_000,
  })
  const told: TestService['told'] = {
    failed: [],
    answered: [],
    late: [],
    unavailable: [],
    limited: [],
    overShare: [],
    refused: [],
    authentication: [],
    lost: {},
  }
  const httpTelemetry: HttpTelemetry = {
    failed: (event) => told.failed.push(event.error),
    limited: (limit) => told.limited.push(limit),
    refused: (status) => told.refused.push(status),
  }
  const { requests, tests, caps } = createTenantLimits(
    { ...NO_LIMITS, ...options.limits },
    options.limitsClock ?? clock,
    httpTelemetry,
  )
  const customers = createCustomers({
    customers: reportedCustomers(ledger, createCustomerStore(db, caps)),
    initialCredits: options.initialCredits ?? 100_000,
  })
  const apiKeys = createApiKeys({
    keys: createApiKeyStore(db),
    forget: keys.changed,
    ensureCustomer: customers.ensure,
    randomness: systemRandomness(),
    newKeyId: randomUUID,
  })
  const local = options.local ?? true
  const billing = createBilling({ db, clock, local, provider: options.provider, ledger })
  const lookups = new Lookups({ clock, telemetry: { lookup() {} } })
  const deliveries = new DeliveryClient({
    clock,
    telemetry: { withheld() {} },
    version: '0.0.0',
    allow: LOOPBACK,
    resolve: (hostname, customerId) => lookups.resolve(hostname, customerId),
  })
  const buffers = createBufferStore(db, box, caps)
  const deadLetters = createDeadLetterStore(db)
  const services = {
    ...billing,
    customers,
    projects: createProjects({ projects: createProjectStore(db, caps) }),
    buffers: {
      ...createBuffers({
        buffers,
        records: cache,
        checkDestination: () => null,
        newUid: randomUUID,
        onShortSecrets: () => {},
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
        telemetry: { retry: () => {} },
      }),
    },
    analytics: createAnalytics({ store: createAnalyticsStore(db), clock }),
    local,
  }
  const audit = createAuditTrail({
    ...options.allowances,
    store: options.auditStore ?? createAuditStore(db),
    clock,
    revokedKey: keys.revoked,
    newId: randomUUID,
    isOutage,
    telemetry: {
      authenticationFailed: (place, credential) => told.authentication.push(`${place} ${credential}`),
      written: () => {},
      lost: (reason, records) => {
        told.lost[reason] = (told.lost[reason] ?? 0) + records
      },
      leftOut: () => {},
      waits: () => {},
    },
  })
  const inbox = new MemoryInbox()
  const telemetry: IngestTelemetry = {
    answered: ({ status }) => told.answered.push(status),
    lateVerdict: (outcome) => told.late.push(outcome),
    overShare: (holder) => told.overShare.push(holder),
    unavailable: (dependency) => told.unavailable.push(dependency),
  }
  const ingest = new Ingest({
    buffers: cache,
    keys,
    ledger,
    inbox,
    shares: inbox,
    clock,
    telemetry,
  })
  const gate = { closing: false }
  const bodies = new BodyShares(options.maxBodiesBytes ?? Number.POSITIVE_INFINITY, clock)
  const authenticator = {
    ...createKeyAuthentication(keys),
    byToken: () => Promise.reject(new ServiceError('tokenInvalid')),
  }
  const handler = createHandler({
    telemetry: httpTelemetry,
    gate,
    isOutage,
    version: '0.0.0',
    health: createHealth(clock, '0.0.0', { postgres: () => db`SELECT 1` }),
    ingest: new IngestRoute({
      ingest,
      clock,
      gate,
      bodies,
      telemetry,
      audit,
      maxBodyBytes: options.maxBodyBytes ?? 1_000_000,
    }),
    admin: mountRoutes(adminTable(services), {
      authenticator,
      limits: requests,
      clock,
      random: { fraction: options.fraction ?? Math.random },
      bodies,
      audit,
      isOutage,
    }),
    others: [...(local ? [new Receiver(clock).middleware] : []), ...(options.others ?? [])],
  })
  const listener = await listen(clock, handler, gate, {
    host: '127.0.0.1',
    port: 0,
    onRefused: (status) => told.refused.push(status),
    ...options.listener,
  })
  return {
    url: listener.url,
    port: listener.port,
    bodies,
    listener,
    db,
    databaseUrl,
    inbox,
    ledger,
    apiKeys,
    told,
    ownerKey: async (customerId) => (await apiKeys.createOwnerKey(customerId)).secret,
    async stop() {
      bufferChanges.close()
      await listener.close(2_000)
      await audit.stop()
      if (options.feed) await feed.stop()
      await deliveries.close(0)
      await ledger.close()
      await statements.end()
      await keys.stop()
      await db.end({ timeout: 2 })
    },
  }
}

function fail(error: unknown): never {
  throw error
}
