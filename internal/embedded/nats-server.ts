/**
 * The embedded NATS JetStream: loopback only, a generated password, its store in the data folder. The
 * address stays the same over restarts unless somebody else has taken the port meanwhile.
 */
import { randomBytes } from 'node:crypto'
import { appendFileSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { connect } from 'nats'

import { prepareFolder, secretFile } from './data-folder.ts'
import { EmbeddedServer } from './embedded-server.ts'
import { restartAfterFullDisk } from './full-disk.ts'
import { keptPort, newPort } from './port.ts'
import type { EmbeddedLog } from './ports.ts'
import { ServerExitedError, untilReady } from './readiness.ts'
import { ServerProcess, type StopStep, stopOrphans } from './server-process.ts'
import { giveTo, NATS, runAs, type ServerUser, serverEnvironment, userOf } from './server-user.ts'

const USER = 'penstock'
const CONFIG = 'nats.conf'
const LOG = 'nats.log'
/** A pack is at most 256 KB or one larger item, a commit 512 KB; a batch's items may be replayed together. */
const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
/**
 * Nothing but a ceiling for the sum of the streams' `max_bytes`; the same at every start, for JetStream does
 * not recover streams that reserve more than it.
 */
const DEFAULT_MAX_STORE_BYTES = 1024 ** 4
export const NATS_STOPPING: StopStep[] = [{ signal: 'SIGTERM', waitMs: 5_000 }]

export interface NatsServerOptions {
  /** Folder for configuration, log and store; created when absent. */
  dir: string
  /** Path of nats-server (see `findNatsServer`). */
  binary: string
  log: EmbeddedLog
  /** `always` syncs every message before it is acknowledged; or an interval such as `10s`, `2m`. */
  sync: string
  /** Separate JetStream accounts by name, each with a user of that name and the server's password. */
  accounts?: string[]
  maxStoreBytes?: number
  /** Default `penstock`; each server of a cluster has its own. */
  name?: string
  /** Of all accounts and routes; default: generated, and kept in `dir`. */
  password?: string
  /** Makes it one of a JetStream cluster: the port for its peers, and those of all of them. */
  cluster?: { port: number; ports: readonly number[] }
  /** Gives a start up that is under way. */
  signal?: AbortSignal | undefined
}

export interface NatsServer {
  /** `nats://<user>:<password>@127.0.0.1:<port>` */
  readonly url: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly binary: string
  readonly pid: number
  readonly running: boolean
  /** How the process that runs now ends: see ServerProcess. */
  readonly exited: Promise<string>
  /** URL with the credentials of one of `accounts`. */
  urlOf(account: string): string
  /** Resolves when the process is gone; repeating it is harmless. */
  stop(): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** Stops it when it runs, and starts it on the same store and port. */
  restart(): Promise<void>
  /** Restarts it whenever it dies, and once a disk that was full has room again; `onLost` when that does not help. */
  keepRunning(onLost: (error: Error) => void): void
}

/** Starts NATS in `dir`, first stopping one that a killed process left there. Rejects with EmbeddedStartError. */
export async function startNats(options: NatsServerOptions): Promise<NatsServer> {
  const dir = prepareFolder(options.dir)
  for (const pid of await stopOrphans(`-c ${join(dir, CONFIG)}`, NATS_STOPPING))
    options.log.warn({ server: 'nats', pid }, 'stopped a server left behind')
  const password = options.password ?? natsPassword(dir)
  const user = userOf(NATS)
  const portFile = join(dir, 'port')
  let port = await keptPort(portFile, options.log)
  const launch = () => launchNats(options, { dir, user, password, port })
  const spec = { name: options.name ?? 'nats', log: options.log, stopping: NATS_STOPPING, launch }
  const server = await EmbeddedServer.start(spec).catch(async (error: unknown) => {
    if (!lostThePort(error)) throw error
    port = await newPort(portFile, options.log)
    return EmbeddedServer.start(spec)
  })
  const afterFullDisk = () =>
    restartAfterFullDisk({
      logFile: join(dir, LOG),
      dir,
      log: options.log,
      restart: () => void server.end(),
    })
  return natsServer(server, { port, password, binary: options.binary }, afterFullDisk)
}

/** The password kept in `dir`, generated when absent. */
export function natsPassword(dir: string): string {
  return secretFile(join(dir, 'password'), () => randomBytes(24).toString('base64url'))
}

function natsServer(
  server: EmbeddedServer,
  at: { port: number; password: string; binary: string },
  afterFullDisk: () => () => void,
): NatsServer {
  let stopWatching = () => {}
  const urlOf = (user: string) => `nats://${user}:${at.password}@127.0.0.1:${at.port}`
  return {
    ...at,
    user: USER,
    url: urlOf(USER),
    urlOf,
    get pid() {
      return server.pid
    },
    get running() {
      return server.running
    },
    get exited() {
      return server.exited
    },
    stop() {
      stopWatching()
      return server.stop()
    },
    kill: (signal) => server.kill(signal),
    restart: () => server.restart(),
    keepRunning(onLost) {
      server.keepRunning(onLost)
      stopWatching()
      stopWatching = afterFullDisk()
    },
  }
}

interface Place {
  dir: string
  user: ServerUser | undefined
  password: string
  port: number
}

async function launchNats(
  options: NatsServerOptions,
  { dir, user, password, port }: Place,
): Promise<ServerProcess> {
  const config = join(dir, CONFIG)
  const logFile = join(dir, LOG)
  mkdirSync(join(dir, 'store'), { recursive: true, mode: 0o700 })
  writeFileSync(config, configuration(options, dir, port, password), { mode: 0o600 })
  appendFileSync(logFile, '', { mode: 0o600 })
  giveTo(user, dir)
  rmSync(join(dir, 'nats.pid'), { force: true })
  const from = sizeOf(logFile)
  const server = await ServerProcess.launch({
    ...runAs(user, options.binary, ['-c', config], [dir, dirname(options.binary)]),
    cwd: dir,
    env: serverEnvironment(),
    logFile,
  })
  await untilReady(
    'nats-server',
    server,
    () => probe(port, password),
    { file: logFile, from },
    {
      signal: options.signal,
      steps: NATS_STOPPING,
    },
  )
  return server
}

function configuration(options: NatsServerOptions, dir: string, port: number, password: string): string {
  const text = JSON.stringify
  return `# Written at every start.
server_name: ${text(options.name ?? 'penstock')}
listen: "127.0.0.1:${port}"
pid_file: ${text(join(dir, 'nats.pid'))}
log_file: ${text(join(dir, LOG))}
logfile_size_limit: 10MB
logfile_max_num: 2
max_payload: ${MAX_PAYLOAD_BYTES}
max_pending: 128MB
jetstream {
  store_dir: ${text(join(dir, 'store'))}
  sync_interval: ${text(options.sync)}
  max_file_store: ${options.maxStoreBytes ?? DEFAULT_MAX_STORE_BYTES}
  max_memory_store: ${256 * 1024 * 1024}
}
accounts {
${[USER, ...(options.accounts ?? [])].map((name) => account(name, password)).join('\n')}
}
${options.cluster ? peers(options.cluster, password) : ''}`
}

function peers({ port, ports }: NonNullable<NatsServerOptions['cluster']>, password: string): string {
  const route = (peer: number) => JSON.stringify(`nats://${USER}:${password}@127.0.0.1:${peer}`)
  return `cluster {
  name: penstock
  listen: "127.0.0.1:${port}"
  authorization: ${JSON.stringify({ user: USER, password })}
  routes: [ ${ports.map(route).join(', ')} ]
}
`
}

function account(name: string, password: string): string {
  const user = JSON.stringify({ user: name, password })
  return `  ${JSON.stringify(name)}: { jetstream: enabled, users: [ ${user} ] }`
}

/** Ready means that JetStream has recovered its streams and answers our own account. */
async function probe(port: number, pass: string): Promise<void> {
  const connection = await connect({
    servers: `127.0.0.1:${port}`,
    user: USER,
    pass,
    reconnect: false,
    timeout: 2_000,
  })
  try {
    const manager = await connection.jetstreamManager({ timeout: 2_000 })
    await manager.getAccountInfo()
  } finally {
    await connection.close()
  }
}

/** Whether somebody else listens on a port that this server wanted. */
export function lostThePort(error: unknown): boolean {
  return error instanceof ServerExitedError && error.text.includes('address already in use')
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
