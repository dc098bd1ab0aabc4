/** The roles of the cluster as processes: what each is told, and the order in which they start and stop. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { prepareFolder, secretFile } from '../../internal/embedded/data-folder.ts'
import {
  type NodeOptions,
  type NodeProcess,
  nodesFolder,
  startNode,
  stopLeftNodes,
} from '../../internal/embedded/node-process.ts'
import type { EmbeddedLog } from '../../internal/embedded/ports.ts'
import type { Config } from '../config/config.ts'
import { settingsOfChildren } from '../wiring/child-nodes.ts'
import { secretKeyText } from '../wiring/secrets.ts'
import { FIRST_SHARDS, type Place, placesOf } from './places.ts'
import type { Servers } from './servers.ts'

/** How long requests may still come to their end before the actors stop too, ms. */
const HEAD_START_MS = 2_000
/** For nodes that somebody started by hand. */
const LEFT_NODES_MS = 2_000

export interface ClusterNodes {
  /** Where their variables and logs are. */
  readonly dir: string
  readonly all: readonly NodeProcess[]
  /** What takes traffic first, the actors last. */
  stop(): Promise<void>
}

export interface NodesOptions {
  config: Config
  log: EmbeddedLog
  servers: Servers
  signal: AbortSignal
}

/** Resolves when all are ready. Rejects with EmbeddedStartError, leaving none behind. */
export async function startNodes(options: NodesOptions): Promise<ClusterNodes> {
  const dir = prepareFolder(nodesFolder(options.servers.dataDir))
  const settings = settingsOfAll(options)
  const started: NodeProcess[] = []
  const abandon = () => {
    for (const node of started) node.kill('SIGTERM')
  }
  process.once('exit', abandon)
  const stop = async () => {
    await stopInOrder(started, dir)
    process.off('exit', abandon)
  }
  const giveUp = new AbortController()
  const signal = AbortSignal.any([giveUp.signal, options.signal])
  const start = async (place: Place) => {
    const node = await startNode(nodeOptions(place, { ...options, signal }, dir, settings))
    started.push(node)
    return node
  }
  try {
    const [first, ...others] = placesOf(options.config)
    const all = [await start(first!), ...(await allOrNone(others.map(start), giveUp))]
    return { dir, all, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Rejects with the first error, once none is under way any more. */
async function allOrNone<T>(starts: Promise<T>[], giveUp: AbortController): Promise<T[]> {
  const errors: unknown[] = []
  for (const start of starts) {
    start.catch((error: unknown) => {
      errors.push(error)
      giveUp.abort()
    })
  }
  await Promise.allSettled(starts)
  if (errors.length > 0) throw errors[0]
  return Promise.all(starts)
}

function nodeOptions(
  { name, role, port, opsPort }: Place,
  { log, signal }: NodesOptions,
  dir: string,
  settings: Record<string, string>,
): NodeOptions {
  const program = join(import.meta.dirname, '..', role, 'main.ts')
  return { name, program, dir, settings, port, opsPort, log, signal }
}

function settingsOfAll({ config, servers }: NodesOptions): Record<string, string> {
  return settingsOfChildren({
    PENSTOCK_NATS_URL: servers.nats.urls.join(','),
    PENSTOCK_DATABASE_URL: servers.postgres.url,
    PENSTOCK_DATA_DIR: servers.dataDir,
    PENSTOCK_REPLICAS: String(config.replicas),
    PENSTOCK_SYNC: config.sync,
    PENSTOCK_SHARDS: String(shardsOf(config, servers.dataDir)),
    PENSTOCK_LOCAL: String(config.local),
    PENSTOCK_SECRET_KEY: process.env.PENSTOCK_SECRET_KEY || secretKeyText(servers.dataDir),
  })
}

/** The count last asked for. */
function shardsOf({ shards }: Config, dataDir: string): number {
  const file = join(dataDir, 'shards')
  if (shards !== undefined) writeFileSync(file, `${shards}\n`)
  return Number(secretFile(file, () => String(FIRST_SHARDS)))
}

async function stopInOrder(nodes: readonly NodeProcess[], dir: string): Promise<void> {
  const actors = nodes.filter(({ url }) => url === undefined)
  const gates = nodes.filter(({ url }) => url !== undefined).map((node) => node.stop())
  const timer = new AbortController()
  await Promise.race([Promise.all(gates), delay(HEAD_START_MS, undefined, { signal: timer.signal })])
  timer.abort()
  await Promise.all([...gates, ...actors.map((node) => node.stop())])
  await stopLeftNodes(dir, LEFT_NODES_MS)
}
