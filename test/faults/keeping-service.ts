/**
 * The service with housekeeping that begins at a few KB instead of many MB, so that a test reaches a keep, a
 * snapshot and their purges within seconds. All its parts are the real ones; NATS and Postgres must be given.
 */
import { randomUUID } from 'node:crypto'
import { readConfig } from '../../cmd/config/config.ts'
import { addressLines, greet } from '../../cmd/penstock/banner.ts'
import { createAdmin } from '../../cmd/wiring/admin.ts'
import { createTrail } from '../../cmd/wiring/audit.ts'
import { openDeliveries } from '../../cmd/wiring/deliveries.ts'
import { type Logs, type Node, openLogs, openStore, type Store } from '../../cmd/wiring/foundation.ts'
import { startIngress } from '../../cmd/wiring/ingress.ts'
import { ensureOwners } from '../../cmd/wiring/owners.ts'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import { BodyShares } from '../../internal/http/body-shares.ts'
import { createHealth } from '../../internal/http/health.ts'
import { type Gate, listen } from '../../internal/http/listener.ts'
import { createHandler } from '../../internal/http/server.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import { isOutage } from '../../internal/postgres/outage.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import { parseSecretKeys } from '../../internal/postgres/secrets.ts'
import { runService, type ServiceProcess } from '../../internal/runtime/process.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import type { HousekeepingLimits } from '../../internal/shard/housekeeping/limits.ts'
import { ActorNode } from '../../internal/shard/ownership/node.ts'
import { createHttpTelemetry } from '../../internal/telemetry/http-telemetry.ts'
import { createLogger } from '../../internal/telemetry/logger.ts'
import { startMetrics } from '../../internal/telemetry/metrics.ts'
import { createShardTelemetry } from '../../internal/telemetry/shard-telemetry.ts'
import { alone } from '../support/alone.ts'

const LIMITS: HousekeepingLimits = {
  everyMs: 50,
  purgeLagMs: 200,
  syncLagMs: 0,
  keepRatio: 1,
  keepBytes: 20_000,
  snapshotBytes: 4_000,
  partBytes: 500,
  fullShare: 0.6,
}
/** Secrets at rest are none of this program's business. */
const SECRET_KEY = Buffer.alloc(32, 7).toString('base64')

const config = readConfig(process.env, 'penstock')
const log = createLogger({ level: config.logLevel, role: config.role })
const clock = systemClock()
runService(
  clock,
  log,
  (error) => log.fatal({ err: error }, 'the start failed'),
  (service) => start(nodeOf(service), service.fail),
)

function nodeOf({ lifecycle }: ServiceProcess): Node {
  return { config, log, clock, lifecycle, boot: randomUUID(), watched: false }
}

async function start(node: Node, fail: (error: Error) => void): Promise<void> {
  const { lifecycle } = node
  await migrate(config.databaseUrl!)
  const keys = parseSecretKeys(SECRET_KEY)
  if (!keys.ok) throw new Error(keys.error)
  const store = await openStore(node, config.databaseUrl!, keys.value, { unreadable() {} })
  const logs = await openLogs(node, store.db, { natsUrls: config.natsUrls! })
  const { meter } = await lifecycle.acquire(
    'metrics',
    () => startMetrics(config.role, process.env),
    (it) => it.shutdown(),
  )
  const gate: Gate = { closing: false }
  const bodies = new BodyShares(config.maxBodiesBytes, clock)
  const audit = createTrail(node, store, meter)
  const deliveries = await openDeliveries(node, 'keeping', meter)
  const actor = await startKeepingActor(node, store, logs, meter, deliveries)
  const ingress = await startIngress(node, store, logs, meter, { gate, bodies, audit }, fail)
  const telemetry = createHttpTelemetry(log, meter)
  const admin = createAdmin(node, store, deliveries, ingress.ledger, { bodies, telemetry, audit }, undefined)
  await ensureOwners(node, admin.apiKeys)
  const handler = createHandler({
    telemetry,
    gate,
    isOutage,
    ingest: ingress.route,
    admin: admin.router,
    others: [],
    version: '0.0.0',
    health: createHealth(clock, 'keeping', {
      shards: async () => {
        const [first] = actor.troubles()
        if (first) throw new Error(`shard ${first.shard}: ${first.trouble}`)
      },
    }),
  })
  const http = await lifecycle.acquire(
    'http listener',
    () => listen(clock, handler, gate, { host: config.host, port: config.port }),
    (it) => it.close(8_000),
  )
  greet(addressLines({ url: http.url, opsUrl: http.url }))
}

async function startKeepingActor(
  node: Node,
  store: Store,
  { broker, shards }: Logs,
  meter: Parameters<typeof createShardTelemetry>[1],
  deliverer: DeliveryClient,
): Promise<ActorNode> {
  const { lifecycle, boot } = node
  const actor = new ActorNode({
    boot,
    clock,
    broker,
    shards,
    deliverer,
    randomness: systemRandomness(),
    membership: alone(boot, shards),
    policies: store.buffers,
    deadLetters: createDeadLetters(store.db),
    projection: createProjection(store.db),
    telemetry: createShardTelemetry(log, meter),
    limits: {
      payloadBudget: 64 * 1024,
      payloadMs: 1_000,
      attemptsPerBuffer: 16,
      factsAtOnce: 5_000,
      housekeeping: LIMITS,
    },
  })
  return lifecycle.acquire(
    'shards',
    async () => {
      await actor.start()
      return actor
    },
    (it) => it.stop(11_000),
  )
}
