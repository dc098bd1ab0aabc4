/** An installation of one shard whose inbox is written to directly: what is measured are its actors alone. */
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import { createBroker } from '../../internal/nats/broker.ts'
import { DEFAULT_LEASE_TTL_MS, leaseTimes } from '../../internal/nats/leases/lease-times.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { connectTo } from '../../test/nats/support.ts'
import { Cluster, type ClusterNode } from '../../test/support/cluster.ts'
import { ownNats } from '../../test/support/servers.ts'
import { type Sink, startSink } from '../load/programs.ts'
import { PackWriter, type Written } from '../million/packs.ts'
import { untilBuffered } from '../million/shard.ts'

const WEEK_MS = 604_800_000
/** After which a probe is due, ms. */
export const DUE_MS = 100
/** Of a payload, bytes. */
const SIZE = 1_024
/** Items: what an ingress under load makes of them. */
const PACK = 50

export interface OneShard {
  readonly sink: Sink
  startActor(env?: Record<string, string>): Promise<ClusterNode>
  /** Another one, resolved when it would take over at once. */
  startStandby(): Promise<ClusterNode>
  /** Items of 1 KB, each in a group of its own that waits for a week. */
  hold(items: number): Promise<void>
  /** An item in a group of its own that is due after `DUE_MS`; answers its marker once it is stored. */
  probe(): Promise<number>
  close(): Promise<void>
}

/** What becomes of a shard whose owner is stopped while another node is ready to take it. */
export type Stop<T> = (shard: OneShard, owner: ClusterNode, standby: ClusterNode) => Promise<T>

/**
 * `stop`, `rounds` times with each of `sizes` (items that are live on the shard, ascending): the standby owns the shard
 * afterwards, and is the next one to be stopped.
 */
export async function ownersInTurn<T>(
  sizes: readonly number[],
  rounds: number,
  stop: Stop<T>,
): Promise<[size: number, measured: T[]][]> {
  const shard = await startOneShard()
  let owner = await shard.startActor()
  let live = 0
  const all: [number, T[]][] = []
  for (const size of sizes) {
    const measured: T[] = []
    for (let round = 0; round < rounds; round++) {
      const [standby] = await Promise.all([shard.startStandby(), shard.hold(size - live)])
      live = size
      await untilBuffered(owner, (items) => items === size)
      measured.push(await stop(shard, owner, standby))
      owner = standby
    }
    all.push([size, measured])
  }
  await shard.close()
  return all
}

/** No actor runs yet, so the streams may be absent: nothing can be written before the first one is ready. */
export async function startOneShard(): Promise<OneShard> {
  const nats = await ownNats()
  const cluster = await Cluster.create({
    PENSTOCK_NATS_URL: nats.url,
    PENSTOCK_SHARDS: '1',
    PENSTOCK_LOG_LEVEL: 'info',
  })
  const { sink, url } = await startSink()
  const [patient, quick] = await makeBuffers(cluster, url)
  const { connection } = await connectTo(nats.url)
  const broker = createBroker(connection, { clock: systemClock() })
  const writer = new PackWriter(broker)
  return {
    sink,
    startActor: (env) => cluster.start('actor', env),
    async startStandby() {
      const actor = await cluster.start('actor')
      // Before that a node takes nobody for gone.
      const { unsureMs, heartbeatMs } = leaseTimes(DEFAULT_LEASE_TTL_MS)
      await delay(unsureMs + heartbeatMs)
      return actor
    },
    async hold(items) {
      for (let left = items; left > 0; left -= PACK) await writer.write(held(patient, writer.items, left))
    },
    async probe() {
      const marker = writer.items
      await writer.write([{ bufferUid: quick, groupKey: `probe-${marker}`, size: SIZE }])
      return marker
    },
    async close() {
      await Promise.all([cluster.stop(), sink.stop()])
      broker.close()
      await connection.close()
      await nats.stop()
    },
  }
}

function held(bufferUid: string, first: number, left: number): Written[] {
  const itemOf = (_: unknown, n: number) => ({ bufferUid, groupKey: `held-${first + n}`, size: SIZE })
  return Array.from({ length: Math.min(PACK, left) }, itemOf)
}

/** Uids of one whose items wait, and of one whose do not. */
async function makeBuffers(cluster: Cluster, url: string): Promise<[string, string]> {
  const admin = await cluster.start('admin')
  const adminApi = cluster.api(admin)
  const projectId = await adminApi.createProject()
  for (const [bufferId, ms] of [
    ['patient', WEEK_MS],
    ['quick', DUE_MS],
  ] as const) {
    const batch = { idleTimeoutMs: ms, maxWaitFromFirstMs: ms }
    await adminApi.createBuffer(projectId, bufferId, { batch, delivery: { url } })
  }
  await admin.stop()
  const sql = postgres(cluster.databaseUrl, { max: 1 })
  const [patient, quick] = await sql<{ uid: string }[]>`SELECT uid FROM buffers ORDER BY buffer_id`
  await sql.end()
  return [patient!.uid, quick!.uid]
}
