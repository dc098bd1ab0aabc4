/**
 * `npm start`: ingest, admin and shards in one process, over an embedded NATS and Postgres
 * (docs/architecture/protocol.md, "The local instance").
 */
import { statfs } from 'node:fs/promises'
import { type Embedded, startEmbedded } from '../../internal/embedded/servers.ts'
import { ownRequests } from '../../internal/http/own-requests.ts'
import { Receiver } from '../../internal/http/receiver.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import { closeNodes } from '../../internal/postgres/settlement.ts'
import type { ServiceProcess } from '../../internal/runtime/process.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { Config } from '../config/config.ts'
import type { Backends } from '../wiring/backends.ts'
import type { Node } from '../wiring/foundation.ts'
import { runProgram } from '../wiring/program.ts'
import { ownSecretKey } from '../wiring/secrets.ts'
import { addressLines, greet, hostToAsk, ownerLines } from './banner.ts'
import { lastBoots, rememberBoot } from './last-boots.ts'
import { localPayments } from './local-payments.ts'
import { refuseTroublesAt, tableWith } from './process-shards.ts'
import { Processes, shareOut } from './processes.ts'
import { offer } from './shared-receiver.ts'

/** Of the local instance; without a local instance it has no route. */
const receiver = new Receiver(systemClock())

runProgram({
  role: 'penstock',
  ingress: true,
  admin: true,
  actor: true,
  backends: embeddedBackends,
  async prepare(node, { db }, backends, { fail }) {
    await closeNodes(db, (each) => backends.overBoots.includes(each), 0)
    rememberBoot(node.config.dataDir, node.boot)
    const processes = new Processes(node, backends, fail)
    const actors = await processes.startActors()
    return {
      shards: () => refuseTroublesAt(actors),
      table: (own) => tableWith(own, actors),
      async join(url) {
        if (isAlone(node.config)) return
        const receiverUrl = node.config.local ? await offer(node, receiver) : '-'
        await processes.startFronts(url, [receiverUrl, ...actors])
      },
    }
  },
  port: (config) => (isAlone(config) ? undefined : 'first'),
  routes: ({ config }) => (config.local ? [ownRequests(config.host), receiver.middleware] : []),
  ownProvider: localPayments,
  watched: isWatched,
  /** Not log lines: they are there to be read and pasted. */
  async greet({ config }, { url: bound = '', opsPort, owner }) {
    const host = hostToAsk(config.host)
    const url = `http://${host}:${new URL(bound).port || 80}`
    greet(addressLines({ url, opsUrl: `http://${host}:${opsPort}` }) + (owner ? ownerLines(url, owner) : ''))
  },
})

function isWatched({ local }: Config): boolean {
  return local && process.stdout.isTTY
}

/** Among those that take requests. */
function isAlone({ processes }: Config): boolean {
  return shareOut(processes).fronts === 1
}

async function embeddedBackends(node: Node, { fail }: ServiceProcess): Promise<Backends> {
  const { config, lifecycle } = node
  const embedded = await lifecycle.acquire(
    'embedded servers',
    (signal) => embed(node, fail, signal),
    (it) => it.stop(),
  )
  await migrate(embedded.databaseUrl)
  return {
    databaseUrl: embedded.databaseUrl,
    natsUrls: config.natsUrls ?? [embedded.natsUrl],
    secretKeys: config.secretKeys ?? ownSecretKey(embedded.dataDir),
    ...(config.natsUrls === undefined && { storeBytes: await shareOfDisk(embedded.dataDir) }),
    overBoots: lastBoots(embedded.dataDir),
  }
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
