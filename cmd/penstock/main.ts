/** `npm start`: ingest, admin and shards in one process, over an embedded NATS and Postgres. */
import { EmbeddedStartError } from '../../internal/embedded/ports.ts'
import { startEmbedded } from '../../internal/embedded/servers.ts'
import { createHealth } from '../../internal/http/health.ts'
import { listen } from '../../internal/http/listener.ts'
import { createApp } from '../../internal/http/server.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { ConfigError, describeEnvironment, readConfig } from '../../internal/runtime/config.ts'
import { runService, type ServiceProcess } from '../../internal/runtime/process.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { createHttpTelemetry } from '../../internal/telemetry/http-telemetry.ts'
import { createLogger } from '../../internal/telemetry/logger.ts'
import { startMetrics } from '../../internal/telemetry/metrics.ts'
import { startOps } from '../../internal/telemetry/ops-server.ts'

try {
  run(readConfig(process.env, 'penstock'))
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

function run(config: ReturnType<typeof readConfig>): void {
  const log = createLogger({ level: config.logLevel, role: config.role })
  const clock = systemClock()
  log.info({ environment: describeEnvironment(process.env) }, 'starting')
  runService(clock, log, (error) => reportStart(log, error), start)

  async function start({ lifecycle, fail }: ServiceProcess): Promise<void> {
    let serving = false
    const metrics = await lifecycle.acquire(
      'metrics',
      () => startMetrics(config.role, process.env),
      (it) => it.shutdown(),
    )
    const ops = await lifecycle.acquire(
      'ops port',
      () =>
        startOps({
          host: config.host,
          port: config.opsPort,
          ready: () => serving && !lifecycle.stopping,
          metrics: metrics.handle,
        }),
      (it) => it.close(),
    )
    const embedded = await lifecycle.acquire(
      'embedded servers',
      () =>
        startEmbedded({
          dataDir: config.dataDir,
          sync: config.sync,
          log,
          natsUrl: config.natsUrls?.join(','),
          databaseUrl: config.databaseUrl,
          natsServerBin: config.natsServerBin,
          onLost: fail,
        }),
      (it) => it.stop(),
    )
    const sql = await lifecycle.acquire(
      'database',
      () => connect(embedded.databaseUrl),
      (it) => it.end({ timeout: 2 }),
    )
    const gate = { closing: false }
    const app = createApp({
      telemetry: createHttpTelemetry(log, metrics.meter),
      gate,
      isOutage: () => false,
      health: createHealth(clock, '0.1.0', { database: () => sql`SELECT 1` }),
    })
    const http = await lifecycle.acquire(
      'http listener',
      () => listen(clock, app.callback(), gate, { host: config.host, port: config.port }),
      (it) => it.close(8_000),
    )
    serving = true
    log.info({ url: http.url, ops: ops.port }, 'ready')
  }
}

/** What whoever starts the service can mend is one line; anything else comes with its stack. */
function reportStart(log: ReturnType<typeof createLogger>, error: unknown): void {
  const expected =
    error instanceof EmbeddedStartError || (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
  if (expected) log.fatal((error as Error).message)
  else log.fatal({ err: error }, 'the start failed')
}
