/** `npm start`: ingest, admin and shards in one process, over an embedded NATS and Postgres (design, section 11). */
import { randomUUID } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import { EmbeddedStartError } from '../../internal/embedded/ports.ts'
import { type Embedded, startEmbedded } from '../../internal/embedded/servers.ts'
import { createHealth } from '../../internal/http/health.ts'
import { type Gate, listen } from '../../internal/http/listener.ts'
import { Receiver } from '../../internal/http/receiver.ts'
import { createApp } from '../../internal/http/server.ts'
import { UnusableBrokerError } from '../../internal/nats/connection.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import { isOutage } from '../../internal/postgres/outage.ts'
import { closeNode } from '../../internal/postgres/settlement.ts'
import { type Config, ConfigError, describeEnvironment, readConfig } from '../../internal/runtime/config.ts'
import { runService, type ServiceProcess } from '../../internal/runtime/process.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { createHttpTelemetry } from '../../internal/telemetry/http-telemetry.ts'
import { createLogger, type Logger } from '../../internal/telemetry/logger.ts'
import { startMetrics } from '../../internal/telemetry/metrics.ts'
import { startOps } from '../../internal/telemetry/ops-server.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { startActor } from '../wiring/actor.ts'
import { createAdmin } from '../wiring/admin.ts'
import { type Node, openLogs, openStore, type Store } from '../wiring/foundation.ts'
import { startIngress } from '../wiring/ingress.ts'
import { addressLines, welcomeLines } from './banner.ts'
import { lastBoot, rememberBoot } from './last-boot.ts'
import { ensureOwners } from './owners.ts'
import { ownSecretKey } from './secrets.ts'

const { version } = packageFile

try {
  const config = readConfig(process.env, 'penstock')
  refuseUnsupported(config)
  run(config)
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

/** Nothing that was asked for is silently left out. */
function refuseUnsupported({ processes, oidc, catalogFile }: Config): void {
  const name =
    (processes > 1 && 'PENSTOCK_PROCESSES') ||
    (oidc && 'PENSTOCK_OIDC_ISSUER') ||
    (catalogFile !== undefined && 'PENSTOCK_CATALOG')
  if (name) throw new ConfigError(`${name}: is not supported by this version yet`)
}

function run(config: Config): void {
  const log = createLogger({ level: config.logLevel, role: config.role })
  const clock = systemClock()
  log.info({ environment: describeEnvironment(process.env), version }, 'starting')
  runService(
    clock,
    log,
    (error) => reportStart(log, error),
    (service) => start({ config, log, clock, lifecycle: service.lifecycle, boot: randomUUID() }, service),
  )
}

async function start(node: Node, { fail }: ServiceProcess): Promise<void> {
  const { config, log, clock, lifecycle, boot } = node
  const serving = { now: false }
  const { metrics, ops } = await startObserving(node, () => serving.now && !lifecycle.stopping)
  const embedded = await lifecycle.acquire(
    'embedded servers',
    (signal) => embed(node, fail, signal),
    (it) => it.stop(),
  )
  await migrate(embedded.databaseUrl)
  const secretKeys = config.secretKeys ?? ownSecretKey(embedded.dataDir)
  const store = await openStore(node, embedded.databaseUrl, secretKeys)
  await closeLastBoot(store, embedded.dataDir, boot)
  const logs = config.natsUrls
    ? await openLogs(node, config.natsUrls)
    : await openLogs(node, [embedded.natsUrl], await shareOfDisk(embedded.dataDir))
  const gate: Gate = { closing: false }
  const actor = await startActor(node, store, logs, metrics.meter, version)
  const ingress = await startIngress(node, store, logs, metrics.meter, gate, fail)
  const admin = createAdmin(node, store, (customerId) => ingress.ledger.credited(customerId))
  const owner = await ensureOwners(node, store, admin.apiKeys, embedded.dataDir)
  const app = createApp({
    telemetry: createHttpTelemetry(log, metrics.meter),
    ...{ gate, isOutage, ingest: ingress.route, admin: admin.router },
    health: createHealth(clock, version, {
      postgres: () => store.db`SELECT 1`,
      nats: () => logs.connection.nats.flush(),
      shards: async () => {
        const [first] = actor.troubles()
        if (first) throw new Error(`shard ${first.shard}: ${first.trouble}`)
      },
    }),
    others: config.local ? [new Receiver(clock).middleware] : [],
  })
  await lifecycle.acquire(
    'key cache',
    () => store.keys,
    (it) => it.stop(),
  )
  const http = await lifecycle.acquire(
    'http listener',
    () => listen(clock, app.callback(), gate, { host: config.host, port: config.port }),
    (it) => it.close(8_000),
  )
  serving.now = true
  log.info({ url: http.url, opsPort: ops.port, shards: logs.shards }, 'ready')
  greet(http.url, ops.port, config, owner)
}

async function closeLastBoot({ db }: Store, dataDir: string, boot: string): Promise<void> {
  const last = lastBoot(dataDir)
  if (last !== undefined) await closeNode(db, last)
  rememberBoot(dataDir, boot)
}

async function startObserving({ lifecycle, config }: Node, ready: () => boolean) {
  const metrics = await lifecycle.acquire(
    'metrics',
    () => startMetrics(config.role, process.env),
    (it) => it.shutdown(),
  )
  const ops = await lifecycle.acquire(
    'ops port',
    () => startOps({ host: config.host, port: config.opsPort, ready, metrics: metrics.handle }),
    (it) => it.close(),
  )
  return { metrics, ops }
}

function embed(
  { config, log }: Node,
  onLost: (error: Error) => void,
  signal: AbortSignal,
): Promise<Embedded> {
  const { dataDir, sync, databaseUrl, natsServerBin } = config
  return startEmbedded({
    dataDir,
    sync,
    log,
    natsUrl: config.natsUrls?.join(','),
    databaseUrl,
    natsServerBin,
    onLost,
    signal,
  })
}

/** The logs of an embedded broker take at most half of what is free, so that `max_bytes` is met before a full disk. Bytes. */
async function shareOfDisk(dataDir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dataDir)
  return Math.floor((bavail * bsize) / 2)
}

/** Not log lines: they are there to be read and pasted. */
function greet(
  url: string,
  opsPort: number,
  config: Config,
  owner: Awaited<ReturnType<typeof ensureOwners>>,
): void {
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  const opsUrl = `http://${host}:${opsPort}`
  process.stdout.write(addressLines(url, opsUrl))
  if (owner) process.stdout.write(welcomeLines({ url, opsUrl, ...owner }))
}

/** What whoever starts the service can mend is one line; anything else comes with its stack. */
function reportStart(log: Logger, error: unknown): void {
  const expected =
    error instanceof ConfigError ||
    error instanceof EmbeddedStartError ||
    error instanceof UnusableBrokerError ||
    // Refused connections, ports in use, names that do not resolve: the system's own words say it.
    /^E[A-Z]+$/.test(String((error as NodeJS.ErrnoException).code))
  if (expected) log.fatal((error as Error).message)
  else log.fatal({ err: error }, 'the start failed')
}
