/**
 * One NATS and one Postgres for a whole test run, started when first asked for and stopped with it (see
 * `setup.ts`). Isolation: a JetStream account of its own, or a database of its own, for whoever asks.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type ConnectionOptions, connect, type NatsConnection } from 'nats'
import postgres from 'postgres'

import { findNatsServer } from '../../internal/embedded/nats-binary.ts'
import { type NatsCluster, startNatsCluster } from '../../internal/embedded/nats-cluster.ts'
import { type NatsServer, startNats } from '../../internal/embedded/nats-server.ts'
import type { EmbeddedLog } from '../../internal/embedded/ports.ts'
import { type PostgresServer, startPostgres } from '../../internal/embedded/postgres-server.ts'
import { removeTempFolders, sweepLeftovers, tempFolder } from './temp-folders.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const MIGRATE = join(ROOT, 'internal', 'postgres', 'migrate.ts')
const ACCOUNTS = 250
const TEMPLATE = 'penstock_template'
/** For servers of tests. */
export const silent: EmbeddedLog = { info: () => {}, warn: () => {}, error: () => {} }

/** Connection data of one JetStream account; `options` is for `connect` of the package nats. */
export interface NatsAccess {
  /** `nats://<user>:<password>@127.0.0.1:<port>` */
  url: string
  user: string
  password: string
  port: number
  options: ConnectionOptions
}

export interface Stoppable {
  stop(): Promise<void>
  kill(signal: NodeJS.Signals): void
}

const started = new Set<Stoppable>()
const connections = new Set<NatsConnection>()

let sharedNats: Promise<NatsServer> | undefined
let sharedPostgres: Promise<PostgresServer> | undefined
let binary: Promise<string> | undefined
let swept: Promise<void> | undefined
let accountsGiven = 0

/** The run's NATS server. Do not stop it: see `ownNats`. */
export function natsServer(): Promise<NatsServer> {
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => `account-${index}`)
  sharedNats ??= ownNats({ accounts })
  return sharedNats
}

/** A JetStream account of the run's NATS that nobody else uses: every name of a stream or bucket is free in it. */
export async function natsAccount(): Promise<NatsAccess> {
  const server = await natsServer()
  if (accountsGiven >= ACCOUNTS) throw new Error(`all ${ACCOUNTS} accounts are given away: take one a file`)
  return access(server, `account-${accountsGiven++}`)
}

/** A connection to `natsAccount()` (or to what is given), closed at the end of the run when still open. */
export async function natsConnection(to?: NatsAccess): Promise<NatsConnection> {
  const connection = await connect((to ?? (await natsAccount())).options)
  connections.add(connection)
  return connection
}

/** A NATS server of the test's own, to stop, kill and restart; it ends with the run at the latest. */
export async function ownNats(
  options: { sync?: string; accounts?: string[]; dir?: string } = {},
): Promise<NatsServer> {
  await sweepOnce()
  const server = await startNats({
    dir: options.dir ?? join(tempFolder('nats'), 'nats'),
    binary: await natsBinary(),
    log: silent,
    sync: options.sync ?? '2m',
    accounts: options.accounts ?? [],
  })
  return endWithRun(server)
}

/** A JetStream cluster of servers of the test's own, three when it says nothing else; it ends with the run at the latest. */
export async function ownNatsCluster(options: { dir?: string; size?: number } = {}): Promise<NatsCluster> {
  await sweepOnce()
  const dir = options.dir ?? join(tempFolder('nats-cluster'), 'nats')
  return endWithRun(
    await startNatsCluster({
      dir,
      size: options.size ?? 3,
      binary: await natsBinary(),
      sync: '2m',
      log: silent,
    }),
  )
}

/** Access with the server's main account. */
export function accessTo(server: NatsServer): NatsAccess {
  return access(server, server.user)
}

/** Path of the nats-server of this run; fetched once for all runs when node_modules lacks it. */
export function natsBinary(): Promise<string> {
  binary ??= findNatsServer({
    natsServerBin: process.env.NATS_SERVER_BIN,
    path: process.env.PATH ?? '',
    log: silent,
  })
  return binary
}

/** The run's Postgres server. Do not stop it: see `ownPostgres`. */
export function postgresServer(): Promise<PostgresServer> {
  sharedPostgres ??= ownPostgres().then(async (server) => {
    await makeTemplate(server)
    return server
  })
  return sharedPostgres
}

/** URL of a new database with all migrations applied, for this caller alone. */
export async function freshDatabase(): Promise<string> {
  const server = await postgresServer()
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await statement(server, (sql) => sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(TEMPLATE)}`)
  return server.urlOf(name)
}

/** URL of a new empty database: no migration applied. */
export async function emptyDatabase(): Promise<string> {
  const server = await postgresServer()
  const name = `empty_${randomUUID().replaceAll('-', '')}`
  await statement(server, (sql) => sql`CREATE DATABASE ${sql(name)} TEMPLATE template0`)
  return server.urlOf(name)
}

/**
 * A Postgres server of the test's own, without schema, to stop, kill and restart; it ends with the run at the latest.
 * `durable`: its commits are on disk; for measurements.
 */
export async function ownPostgres(
  options: { dir?: string; durable?: boolean } = {},
): Promise<PostgresServer> {
  await sweepOnce()
  const dir = options.dir ?? join(tempFolder('postgres'), 'postgres')
  return endWithRun(
    await startPostgres({ dir, log: silent, durable: options.durable ?? false, maxConnections: 300 }),
  )
}

/** `server` is stopped at the end of the run, at the latest. */
export function endWithRun<T extends Stoppable>(server: T): T {
  started.add(server)
  return server
}

/** The regular end: connections, servers, folders. */
export async function stopServers(): Promise<void> {
  await Promise.all([...connections].map((connection) => connection.close().catch(() => {})))
  await Promise.all([...started].map((server) => server.stop()))
  started.clear()
  removeTempFolders()
}

/** The end of a process that can wait for nothing any more. */
export function killServers(): void {
  for (const server of started) server.kill('SIGKILL')
  removeTempFolders()
}

function access(server: NatsServer, user: string): NatsAccess {
  const { password, port } = server
  return {
    url: server.urlOf(user),
    user,
    password,
    port,
    options: { servers: `127.0.0.1:${port}`, user, pass: password },
  }
}

async function makeTemplate(server: PostgresServer): Promise<void> {
  await statement(server, (sql) => sql`CREATE DATABASE ${sql(TEMPLATE)}`)
  if (!existsSync(MIGRATE)) return
  const { migrate } = (await import(MIGRATE)) as { migrate(databaseUrl: string): Promise<unknown> }
  await migrate(server.urlOf(TEMPLATE))
}

/** Over a connection that is closed at once: a template in use cannot be cloned. */
async function statement(
  server: PostgresServer,
  run: (sql: postgres.Sql) => Promise<unknown>,
): Promise<void> {
  const sql = postgres(server.urlOf('postgres'), { max: 1, onnotice: () => {} })
  try {
    await run(sql)
  } finally {
    await sql.end()
  }
}

function sweepOnce(): Promise<void> {
  swept ??= sweepLeftovers()
  return swept
}
