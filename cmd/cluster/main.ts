/**
 * `npm run cluster`: the roles as processes of their own over three NATS servers and a Postgres, all on this
 * machine, to see what `npm start` hides in one process. Nothing is started again by itself: killing a node and
 * watching what becomes of its groups is what it is for.
 */

import { runService } from '../../internal/runtime/process.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { createLogger } from '../../internal/telemetry/logger.ts'
import { type Config, ConfigError, describeEnvironment, readConfig } from '../config/config.ts'
import { greet } from '../penstock/banner.ts'
import { reportStart } from '../wiring/report-start.ts'
import { layoutLines } from './layout.ts'
import { type Member, membersOf } from './members.ts'
import { startNodes } from './nodes.ts'
import { NATS_SERVERS, startServers } from './servers.ts'
import { tryLines } from './welcome.ts'

/** All drains together, ms: an exit within 20 s. */
const SHUTDOWN_MS = 19_500

try {
  const config = readConfig(process.env, 'cluster')
  refuseForeign(config)
  run(config)
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

/** What a cluster on this machine brings itself, or cannot give, is not silently left out. */
function refuseForeign({ natsUrls, databaseUrl, replicas, processes }: Config): void {
  const own = 'the cluster brings its own; unset it, or run the roles themselves'
  if (natsUrls !== undefined) throw new ConfigError(`PENSTOCK_NATS_URL: ${own}`)
  if (databaseUrl !== undefined) throw new ConfigError(`PENSTOCK_DATABASE_URL: ${own}`)
  if (replicas > NATS_SERVERS)
    throw new ConfigError(`PENSTOCK_REPLICAS: must be at most ${NATS_SERVERS} here`)
  if (processes > 1) throw new ConfigError('PENSTOCK_PROCESSES: is for npm start')
}

function run(config: Config): void {
  const log = createLogger({ level: config.logLevel, role: config.role })
  log.info({ environment: describeEnvironment(process.env) }, 'starting')
  const report = (error: unknown) => reportStart(log, error)
  runService(
    systemClock(),
    log,
    report,
    async ({ lifecycle }) => {
      const servers = await lifecycle.acquire(
        'servers',
        (signal) => startServers(config, log, signal),
        (it) => it.stop(),
      )
      const nodes = await lifecycle.acquire(
        'nodes',
        (signal) => startNodes({ config, log, servers, signal }),
        (it) => it.stop(),
      )
      const members = membersOf(servers, nodes)
      for (const member of members) {
        void member.exited.then((ended) => {
          if (!lifecycle.stopping)
            log.warn(farewell(member, ended), 'it ended, and is not started again by itself')
        })
      }
      log.info({ nodes: members.length }, 'ready')
      greet(layoutLines(members, nodes.dir) + tryLines(servers.dataDir, nodes))
    },
    SHUTDOWN_MS,
  )
}

function farewell({ name, pid, command }: Member, ended: string): Record<string, unknown> {
  return { node: name, pid, ended, ...(command && { again: command.join(' ') }) }
}
