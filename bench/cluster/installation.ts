/** An installation of processes of their own, over the run's Postgres and its NATS or another (default sync), with one buffer. */
import { Cluster, type ClusterNode } from '../../test/support/cluster.ts'
import { eventually } from '../../test/support/eventually.ts'
import { natsServer, postgresServer } from '../../test/support/servers.ts'
import { cpuOf, sumOf } from '../processes.ts'
import type { Batching } from '../systems.ts'

export interface Size {
  readonly actors: number
  readonly ingresses: number
  /** A multiple of `actors`, so that each runs as many. */
  readonly shards: number
}

/** Of NATS: one, or three and more with three copies of each message. */
export interface Brokers {
  readonly urls: readonly string[]
  readonly pids: readonly number[]
}

export interface Installation {
  /** Of its NATS servers. */
  readonly brokerPids: readonly number[]
  readonly cluster: Cluster
  readonly shards: number
  readonly ingresses: readonly ClusterNode[]
  readonly actors: readonly ClusterNode[]
}

/** Kinds of its processes. */
export const KINDS = ['ingresses', 'actors', 'NATS', 'Postgres'] as const

const PROJECT = 'bench'
const BUFFER = 'items'

/** Resolves when its shards are spread evenly. Groups are by `$.key`. */
export async function install(
  { actors, ingresses, shards }: Size,
  batch: Batching,
  deliverTo: string,
  brokers?: Brokers,
): Promise<Installation> {
  const cluster = await Cluster.create({
    PENSTOCK_SHARDS: String(shards),
    PENSTOCK_LOG_LEVEL: 'info',
    PENSTOCK_INITIAL_CREDITS: '1000000000',
    ...(brokers && {
      PENSTOCK_NATS_URL: brokers.urls.join(','),
      PENSTOCK_REPLICAS: brokers.urls.length < 3 ? '1' : '3',
    }),
  })
  const admin = await cluster.start('admin')
  const adminApi = cluster.api(admin)
  await adminApi.createProject(PROJECT)
  const groupKey = { mode: 'jsonpath', path: '$.key' } as const
  await adminApi.createBuffer(PROJECT, BUFFER, { batch, groupKey, delivery: { url: deliverTo } })
  await admin.stop()
  const start = (role: 'ingress' | 'actor', count: number) =>
    Promise.all(Array.from({ length: count }, () => cluster.start(role)))
  const nodes = { actors: await start('actor', actors), ingresses: await start('ingress', ingresses) }
  const isLevel = async () =>
    (await Promise.all(nodes.actors.map(shardsOf))).every((count) => count === shards / actors)
  await eventually(isLevel, { timeoutMs: 60_000, everyMs: 100 })
  return { cluster, shards, ...nodes, brokerPids: brokers?.pids ?? [(await natsServer()).pid] }
}

/** Where items are sent, and as whom. */
export function targetOf({ cluster }: Installation, { url }: ClusterNode) {
  return {
    url: `${url}/v1/ingest/${PROJECT}/${BUFFER}`,
    headers: { 'X-API-Key': cluster.ownerKey },
  }
}

/** How many shards it runs. */
async function shardsOf(node: ClusterNode): Promise<number> {
  return [...(await metricsOf(node)).matchAll(/^penstock_shard_epoch\{.*?\} [1-9]/gm)].length
}

export async function metricsOf({ opsUrl }: ClusterNode): Promise<string> {
  return (await fetch(`${opsUrl}/metrics`)).text()
}

/** CPU so far, ms, in the order of `KINDS`. `ingresses`: those that count. */
export async function cpuMsOf(
  installation: Installation,
  ingresses: readonly ClusterNode[] = installation.ingresses,
): Promise<number[]> {
  const of = (pids: readonly number[]) =>
    pids.map((pid) => sumOf(cpuOf(pid))).reduce((all, ms) => all + ms, 0)
  const nodes = (all: readonly ClusterNode[]) => of(all.map(({ service }) => service.child.pid!))
  const servers = [installation.brokerPids, [(await postgresServer()).pid]]
  return [nodes(ingresses), nodes(installation.actors), ...servers.map(of)]
}
