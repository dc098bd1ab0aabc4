/**
 * What `penstock` runs beside itself when no address of NATS or Postgres is configured
 * (docs/architecture/protocol.md, "The local instance").
 */
import { join } from 'node:path'

import { openDataFolder } from './data-folder.ts'
import { findNatsServer } from './nats-binary.ts'
import { type NatsServer, startNats } from './nats-server.ts'
import { nodesFolder, stopLeftNodes } from './node-process.ts'
import type { EmbeddedLog } from './ports.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

/** For the drain of nodes that a killed process left behind. */
const LEFT_NODES_MS = 5_000

export interface EmbeddedOptions {
  /** Taken by this process alone until `stop`. */
  dataDir: string
  /** `always`, or an interval: see NatsServerOptions. */
  sync: string
  log: EmbeddedLog
  /** Set: that broker is used and none is started. */
  natsUrl?: string | undefined
  /** Set: that database is used and none is started. */
  databaseUrl?: string | undefined
  /** Value of NATS_SERVER_BIN, when set. */
  natsServerBin?: string | undefined
  /** Gives a start up that is under way. */
  signal?: AbortSignal | undefined
  /** A server died and could not be brought back: the process must end. */
  onLost(error: Error): void
}

export interface Embedded {
  /** Real path of the data folder. */
  readonly dataDir: string
  readonly natsUrl: string
  /** undefined when the broker is not ours. */
  readonly natsBinary: string | undefined
  readonly databaseUrl: string
  /** Ends both servers and gives the data folder up; rejects with an AggregateError of what failed. */
  stop(): Promise<void>
}

/**
 * Starts what is missing, both at once; when one of them fails, the other is given up. Rejects with
 * EmbeddedStartError, leaving nothing behind.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const folder = openDataFolder(options.dataDir)
  const servers: Server[] = []
  // A process that ends without `stop`, by an error or a second signal, still takes its servers along.
  const abandon = () => {
    for (const server of servers) server.kill('SIGTERM')
  }
  process.once('exit', abandon)
  const stop = () =>
    stopAll(servers, () => {
      process.off('exit', abandon)
      folder.release()
    })
  try {
    // Before their servers are taken from them.
    for (const pid of await stopLeftNodes(nodesFolder(folder.path), LEFT_NODES_MS))
      options.log.warn({ pid }, 'stopped a node left behind')
    const [nats, postgres] = await startBoth(options, folder.path, (server) => servers.push(server))
    for (const server of servers) server.keepRunning(options.onLost)
    return {
      dataDir: folder.path,
      natsUrl: nats?.url ?? options.natsUrl ?? '',
      natsBinary: nats?.binary,
      databaseUrl: postgres?.url ?? options.databaseUrl ?? '',
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Server = NatsServer | PostgresServer

/** Rejects with the first error, once neither is under way any more. */
async function startBoth(
  options: EmbeddedOptions,
  dataDir: string,
  started: (server: Server) => void,
): Promise<[NatsServer | undefined, PostgresServer | undefined]> {
  const errors: unknown[] = []
  const giveUp = new AbortController()
  const signal = AbortSignal.any([giveUp.signal, ...(options.signal ? [options.signal] : [])])
  const attempt = async <T extends Server>(start: Promise<T>): Promise<T | undefined> => {
    try {
      const server = await start
      started(server)
      return server
    } catch (error) {
      errors.push(error)
      giveUp.abort()
      return undefined
    }
  }
  const both = await Promise.all([
    options.natsUrl === undefined ? attempt(embedNats({ ...options, signal }, dataDir)) : undefined,
    options.databaseUrl === undefined ? attempt(embedPostgres({ ...options, signal }, dataDir)) : undefined,
  ])
  if (errors.length > 0) throw errors[0]
  return both
}

async function embedNats(options: EmbeddedOptions, dataDir: string): Promise<NatsServer> {
  const { natsServerBin, log, sync, signal } = options
  const path = process.env.PATH ?? ''
  const binary = await findNatsServer({ natsServerBin, path, log, signal })
  return startNats({ dir: join(dataDir, 'nats'), binary, sync, log, signal })
}

function embedPostgres(options: EmbeddedOptions, dataDir: string): Promise<PostgresServer> {
  return startPostgres({ dir: join(dataDir, 'postgres'), log: options.log, signal: options.signal })
}

async function stopAll(servers: { stop(): Promise<void> }[], release: () => void): Promise<void> {
  const results = await Promise.allSettled(servers.map((server) => server.stop()))
  release()
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  if (errors.length > 0) throw new AggregateError(errors, 'embedded servers did not stop')
}
