/** A node of the installation, whatever its role: the same parts, joined in the same order. */
import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import type { Catalogue } from '../../internal/billing/catalogue.ts'
import { BodyShares } from '../../internal/http/body-shares.ts'
import { createHealth, type Health, type HealthCheck, takesTraffic } from '../../internal/http/health.ts'
import type { IngestRoute } from '../../internal/http/ingest.ts'
import { type Gate, type Listener, type ListenerOptions, listen } from '../../internal/http/listener.ts'
import type { HttpTelemetry } from '../../internal/http/ports.ts'
import { createHandler } from '../../internal/http/server.ts'
import { isOutage } from '../../internal/postgres/outage.ts'
import { runService, type ServiceProcess } from '../../internal/runtime/process.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { HousekeepingLimits } from '../../internal/shard/housekeeping/limits.ts'
import type { ShardTable } from '../../internal/shard/status/shard-table.ts'
import { createHttpTelemetry } from '../../internal/telemetry/http-telemetry.ts'
import { createLogger } from '../../internal/telemetry/logger.ts'
import { startMetrics } from '../../internal/telemetry/metrics.ts'
import { startOps } from '../../internal/telemetry/ops-server.ts'
import { createSecretTelemetry } from '../../internal/telemetry/secret-telemetry.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { type Config, ConfigError, describeEnvironment, readConfig } from '../config/config.ts'
import { createTable, startActor } from './actor.ts'
import { type Admin, createAdmin } from './admin.ts'
import { createTrail, startAuditSweep } from './audit.ts'
import type { Backends } from './backends.ts'
import { publishCatalogue, readCatalogue } from './billing.ts'
import { reachDatabase } from './database.ts'
import { startDayClosing } from './day-closing.ts'
import { startDeadLetterSweep } from './dead-letter-sweep.ts'
import { openDeliveries } from './deliveries.ts'
import { type Logs, type Node, openLogs, openStore, type Store } from './foundation.ts'
import { startIngress } from './ingress.ts'
import { listening } from './listening.ts'
import { announceWebhooks, joinInstallation, startClosingLedgers } from './membership.ts'
import { ensureLocalOwner, ensureOwners, type LocalOwner } from './owners.ts'
import { type OwnProvider, openPayments } from './payments.ts'
import { reportStart } from './report-start.ts'
import { type LedgerOfNode, noLedger } from './reported.ts'
import { startSecretWatch } from './secret-watch.ts'

const { version } = packageFile

export interface Program {
  readonly role: 'penstock' | 'ingress' | 'admin' | 'actor'
  /** Takes webhooks. */
  readonly ingress: boolean
  /** Serves the management API. */
  readonly admin: boolean
  /** Runs shards. */
  readonly actor: boolean
  readonly backends: (node: Node, service: ServiceProcess) => Promise<Backends>
  /** Once nothing is refused any more, and before anything of the program charges or claims. */
  readonly prepare?: (
    node: Node,
    store: Store,
    backends: Backends,
    service: ServiceProcess,
  ) => Promise<Prepared>
  /** Its port is also that of other processes of the program. */
  readonly port?: (config: Config) => ListenerOptions['shared']
  /** Further routes, behind those of ingest and before the management API's. */
  readonly routes?: (node: Node) => readonly Middleware[]
  /** Of an installation that is configured with no other. */
  readonly ownProvider?: OwnProvider
  /** Default: `HOUSEKEEPING_LIMITS`. */
  readonly housekeeping?: Omit<HousekeepingLimits, 'syncLagMs'>
  /** Whether somebody reads the log on a terminal, to see what becomes of webhooks. */
  readonly watched?: (config: Config) => boolean
  /** Once it is ready. */
  readonly greet?: (node: Node, started: Started) => Promise<void>
}

export interface Prepared {
  /** Whether the shards run that other processes of this program have. */
  readonly shards: HealthCheck
  /** What `GET /shards` shows: the table of this process, and what the others tell. */
  readonly table: (own: ShardTable) => Promise<ShardTable>
  /** Once it listens, before it is ready. */
  readonly join?: (url: string) => Promise<void>
}

export interface Started {
  /** undefined: it listens on the ops port only. */
  readonly url: string | undefined
  readonly opsPort: number
  /** Of the customer `local`; undefined: the configuration names the owners. */
  readonly owner: LocalOwner | undefined
}

/** Reads the configuration and runs until a signal. What whoever starts it can mend is one line. */
export function runProgram(program: Program): void {
  try {
    const config = readConfig(process.env, program.role)
    refuseUnsupported(config)
    run(program, config, readCatalogue(config.catalogFile))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}

/** Nothing that was asked for is silently left out. */
function refuseUnsupported({ role, processes }: Config): void {
  if (processes > 1 && role !== 'penstock') throw new ConfigError('PENSTOCK_PROCESSES: is for npm start')
}

function run(program: Program, config: Config, catalogue: Catalogue): void {
  const log = createLogger({ level: config.logLevel, role: config.role })
  const clock = systemClock()
  log.info({ environment: describeEnvironment(process.env), version }, 'starting')
  runService(
    clock,
    log,
    (error) => reportStart(log, error),
    (service) => {
      const { lifecycle } = service
      const watched = program.watched?.(config) ?? false
      const node = { config, log, clock, lifecycle, boot: randomUUID(), watched }
      return start(program, node, service, catalogue)
    },
  )
}

async function start(
  program: Program,
  node: Node,
  service: ServiceProcess,
  catalogue: Catalogue,
): Promise<void> {
  const { lifecycle, log } = node
  const { fail } = service
  const serving: Serving = {}
  const { metrics, ops } = await startObserving(node, serving)
  // Before servers are started, or anything is made beside it.
  if (node.config.databaseUrl !== undefined) await reachDatabase(node.config.databaseUrl)
  const backends = await program.backends(node, service)
  const secrets = createSecretTelemetry(log, metrics.meter)
  const hasShards = runsShards(program, node.config)
  const store = await openStore(node, backends.databaseUrl, backends.secretKeys, secrets)
  const areSecretsReadable = await startSecretWatch(node, store, secrets)
  const logs = await openLogs(node, store.db, backends)
  const role = program.actor && !hasShards ? 'ingress' : program.role
  const leases = await joinInstallation(node, logs, { role, version }, fail)
  // Nothing is refused any more: what a start changes begins here.
  if (program.admin) await publishCatalogue(store.db, catalogue)
  const prepared = await program.prepare?.(node, store, backends, service)
  await startClosingLedgers(node, store, leases)
  if (program.admin) {
    // Before the shards, so that they stop behind them: a statement under way must not take the time of a hand-over.
    await startDayClosing(node, store)
    await startDeadLetterSweep(node, store)
    await startAuditSweep(node, store)
  }
  const gate: Gate = { closing: false }
  const bodies = new BodyShares(node.config.maxBodiesBytes, node.clock)
  const audit = createTrail(node, store, metrics.meter)
  const deliveries = await openDeliveries(node, version, metrics.meter)
  const isOver = (boot: string) => backends.overBoots.includes(boot)
  const actor = hasShards
    ? await startActor(node, store, logs, metrics.meter, deliveries, { leases, isOver }, program.housekeeping)
    : undefined
  if (program.actor || prepared) {
    const table = createTable(node, logs, leases, () => actor?.supervisors() ?? [])
    serving.shards = prepared ? async () => prepared.table(await table()) : table
  }
  if (program.ingress) await announceWebhooks(node, leases)
  const ingress = program.ingress
    ? await startIngress(node, store, logs, metrics.meter, { gate, bodies, audit }, fail)
    : undefined
  const telemetry = createHttpTelemetry(log, metrics.meter)
  const ledger: LedgerOfNode = ingress?.ledger ?? noLedger
  let address = ''
  const payments = program.admin
    ? await openPayments(node, store, {
        meter: metrics.meter,
        ledger,
        address: () => address,
        own: program.ownProvider,
      })
    : undefined
  const admin = program.admin
    ? createAdmin(node, store, deliveries, ledger, { bodies, telemetry, audit }, payments?.provider)
    : undefined
  const shards = () => refuseTroubles(actor?.troubles() ?? [], prepared?.shards)
  const checks = {
    ...dependencies(store, logs),
    ...(ingress && { inboxes: ingress.inboxes }),
    ...((program.actor || prepared) && { shards }),
  }
  const health = createHealth(node.clock, version, checks, { secrets: areSecretsReadable })
  const endpoints = {
    telemetry,
    gate,
    health,
    ingress: ingress?.route,
    admin,
    routes: [...(program.routes?.(node) ?? []), ...(payments?.routes ?? [])],
  }
  await lifecycle.acquire(
    'key cache',
    () => store.keys,
    (it) => it.stop(),
  )
  // Behind the listener and before anything that takes its time: what it holds is the least that a stop may lose.
  await lifecycle.acquire(
    'audit',
    () => audit,
    (it) => it.stop(),
  )
  // Before it listens: a key of the configuration works with the first answer.
  if (admin) await ensureOwners(node, admin.apiKeys)
  const http = ingress || admin ? await serve(node, program, store, endpoints) : undefined
  address = http?.url ?? ''
  if (http) await prepared?.join?.(http.url)
  // Not before: a start that is refused for its port must not make a key that nobody sees.
  const owner = admin && (await ensureLocalOwner(node, store, admin.apiKeys))
  serving.health = health
  log.info({ url: http?.url, opsPort: ops.port, shards: logs.shards }, 'ready')
  await program.greet?.(node, { url: http?.url, opsPort: ops.port, owner })
}

/** With further processes those that take requests run no shards (`cmd/penstock/processes.ts`). */
function runsShards({ actor }: Program, { processes }: Config): boolean {
  return actor && processes === 1
}

function dependencies(store: Store, logs: Logs): Record<string, HealthCheck> {
  return {
    postgres: async () => store.db`SELECT 1`,
    nats: () => logs.connection.nats.flush(),
  }
}

async function refuseTroubles(
  [first]: { shard: number; trouble: string }[],
  others: HealthCheck | undefined,
): Promise<void> {
  if (first) throw new Error(`shard ${first.shard}: ${first.trouble}`)
  await others?.()
}

interface Endpoints {
  readonly telemetry: HttpTelemetry
  readonly gate: Gate
  readonly health: () => Promise<Health>
  readonly ingress: IngestRoute | undefined
  readonly admin: Admin | undefined
  readonly routes: readonly Middleware[]
}

function serve(node: Node, program: Program, store: Store, endpoints: Endpoints): Promise<Listener> {
  const { config, clock, lifecycle } = node
  const { telemetry, gate, health, ingress, admin, routes } = endpoints
  const { host, port, maxConnections } = config
  const shared = program.port?.(config)
  const options = { host, port, maxConnections, shared, onRefused: telemetry.refused }
  const handler = createHandler({
    telemetry,
    gate,
    isOutage,
    health,
    version,
    others: routes,
    ...(ingress && { ingest: ingress }),
    ...(admin && { admin: admin.router }),
  })
  // Requests that wait for a change are answered first: the listener waits for what runs.
  const close = (listener: Listener) => {
    store.bufferChanges.close()
    return listener.close(CLOSE_MS)
  }
  return lifecycle.acquire(
    'http listener',
    async (signal) => {
      const open = () => listen(clock, handler, gate, options)
      const listener = await listening('PENSTOCK_PORT', open)
      // With those of the other processes, not behind them.
      signal.addEventListener('abort', () => void close(listener))
      return listener
    },
    close,
  )
}

/** What runs at the end may take so long, ms. */
const CLOSE_MS = 8_000

/** Empty until the process listens. */
interface Serving {
  health?: () => Promise<Health>
  shards?: () => Promise<unknown>
}

async function startObserving({ lifecycle, config }: Node, serving: Serving) {
  const ready = async () =>
    !lifecycle.stopping && serving.health !== undefined && takesTraffic(await serving.health())
  const metrics = await lifecycle.acquire(
    'metrics',
    () => startMetrics(config.role, process.env),
    (it) => it.shutdown(),
  )
  const { host, opsPort: port } = config
  const shards = () => serving.shards?.()
  const ops = await lifecycle.acquire(
    'ops port',
    () =>
      listening('PENSTOCK_OPS_PORT', () => startOps({ host, port, ready, shards, metrics: metrics.handle })),
    (it) => it.close(),
  )
  return { metrics, ops }
}
