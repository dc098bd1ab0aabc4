/** Three NATS servers and a Postgres in one data folder, with the schema of this version. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { type DataFolder, openDataFolder } from '../../internal/embedded/data-folder.ts'
import { findNatsServer } from '../../internal/embedded/nats-binary.ts'
import { type NatsCluster, startNatsCluster } from '../../internal/embedded/nats-cluster.ts'
import { nodesFolder, stopLeftNodes } from '../../internal/embedded/node-process.ts'
import { type EmbeddedLog, EmbeddedStartError } from '../../internal/embedded/ports.ts'
import { type PostgresServer, startPostgres } from '../../internal/embedded/postgres-server.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import type { Config } from '../config/config.ts'

export const NATS_SERVERS = 3

export interface Servers {
  /** Real path of the data folder. */
  readonly dataDir: string
  readonly nats: NatsCluster
  readonly postgres: PostgresServer
  /** Gives the data folder up too. Rejects with an AggregateError of what failed. */
  stop(): Promise<void>
}

/** Rejects with EmbeddedStartError or NewerSchemaError, leaving nothing behind. */
export async function startServers(config: Config, log: EmbeddedLog, signal: AbortSignal): Promise<Servers> {
  const folder = openDataFolder(config.dataDir)
  const running: Running[] = []
  // A process that ends without `stop`, by an error or a second signal, still takes its servers along.
  const abandon = () => {
    for (const server of running) server.kill('SIGTERM')
  }
  process.once('exit', abandon)
  const stop = () =>
    stopAll(running, () => {
      process.off('exit', abandon)
      folder.release()
    })
  try {
    const { nats, postgres } = await startIn(folder, config, log, signal, running)
    return { dataDir: folder.path, nats, postgres, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

type Running = Pick<NatsCluster, 'kill' | 'stop'>

async function startIn(
  { path }: DataFolder,
  { sync, natsServerBin }: Config,
  log: EmbeddedLog,
  signal: AbortSignal,
  running: Running[],
): Promise<Pick<Servers, 'nats' | 'postgres'>> {
  if (existsSync(join(path, 'nats')))
    throw new EmbeddedStartError(`the data folder ${path} is one of npm start: a cluster needs its own`)
  // Before their servers are taken from them.
  for (const pid of await stopLeftNodes(nodesFolder(path), 5_000))
    log.warn({ pid }, 'stopped a node left behind')
  const binary = await findNatsServer({
    natsServerBin,
    path: process.env.PATH ?? '',
    log,
    signal,
  })
  const nats = await startNatsCluster({ dir: path, size: NATS_SERVERS, binary, sync, log, signal })
  running.push(nats)
  const postgres = await startPostgres({ dir: join(path, 'postgres'), log, maxConnections: 200, signal })
  running.push(postgres)
  await migrate(postgres.url)
  return { nats, postgres }
}

async function stopAll(running: readonly Running[], release: () => void): Promise<void> {
  const results = await Promise.allSettled(running.map((server) => server.stop()))
  release()
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  if (errors.length > 0) throw new AggregateError(errors, 'servers did not stop')
}
