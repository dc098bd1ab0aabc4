/**
 * Housekeeping at scale: one shard that holds a million small items, half of them in disabled buffers and half
 * behind windows of a week, while busy groups pass through it. Then its actor is killed and another one takes
 * over, and begins to deliver all that was held.
 */
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import { createBroker, type NatsBroker } from '../internal/nats/broker.ts'
import { systemClock } from '../internal/runtime/system-clock.ts'
import { connectTo } from '../test/nats/support.ts'
import type { Api } from '../test/support/api.ts'
import { Cluster, type ClusterNode } from '../test/support/cluster.ts'
import { ownNats } from '../test/support/servers.ts'
import { table } from './figures.ts'
import { type Sink, startSink } from './load/programs.ts'
import { PackWriter, type Written } from './million/packs.ts'
import { type LogBytes, logBytes, memoryOf, replayed, untilBuffered } from './million/shard.ts'

const WEEK_MS = 604_800_000
/** Of each kind: no buffer comes near its share of the shard. */
const BUFFERS = 4
const GROUP_ITEMS = 10
const HELD = { size: 200, pack: 500 }
const BUSY = { size: 4_096, pack: 50, groups: 200 }
/** What passes, as a multiple of what is held: enough for all of it to be kept, and carried forward. */
const PASSES = 5
/** Of busy packs: half a minute of it stays in the inbox by the purge lag alone. */
const BUSY_BYTES_PER_S = 8_000_000
const SAMPLE_MS = 250
/** The purge lag, and some rounds of housekeeping. */
const SETTLE_MS = 45_000
const DRAIN_MS = 60_000
const FREE_BYTES = 64 * 1024 ** 2
const HEAD = ['', 'inbox MB', 'journal MB', '÷ live', 'less 64 MB', 'RSS MB', 'peak RSS MB']

interface Setup {
  cluster: Cluster
  adminApi: Api
  broker: NatsBroker
  writer: PackWriter
  sink: Sink
  /** Uids of buffers that hold what they get, and of the one that does not. */
  held: string[]
  busy: string
  close(): Promise<void>
}

/** Markdown. */
export async function measureMillion(items: number): Promise<string> {
  const setup = await setUp()
  let actor = await setup.cluster.start('actor')
  const live = await fill(setup, items)
  await untilBuffered(actor, (count) => count >= items)
  const row = async (name: string, logs?: LogBytes) =>
    rowOf(name, logs ?? (await logBytes(setup.broker)), live, actor)
  const rows = [await row('all held')]
  rows.push(await row('worst moment while busy groups pass', await passThrough(setup, items, PASSES * live)))
  await untilBuffered(actor, (count) => count === items)
  await delay(SETTLE_MS)
  rows.push(await row('at rest afterwards'))

  const killedAt = performance.now()
  await actor.stop('SIGKILL')
  actor = await setup.cluster.start('actor')
  const replayMs = await replayed(actor)
  const outageMs = performance.now() - killedAt
  await untilBuffered(actor, (count) => count === items)
  rows.push(await row('taken over'))

  const delivered = await drain(setup)
  await setup.close()
  return `${table(HEAD, rows)}

${items.toLocaleString('en')} items held, ${mb(live)} MB as they are stored. Take-over: ${seconds(replayMs)} s from claim to serving, ${seconds(outageMs)} s from SIGKILL (the process starts, a lease runs out). Once all of them may go, ${delivered.toLocaleString('en')} are delivered in the first minute, none twice.`
}

async function setUp(): Promise<Setup> {
  const nats = await ownNats()
  const cluster = await Cluster.create({
    PENSTOCK_NATS_URL: nats.url,
    PENSTOCK_SHARDS: '1',
    PENSTOCK_LOG_LEVEL: 'info',
  })
  const adminApi = cluster.api(await cluster.start('admin'))
  const { sink, url } = await startSink()
  const held = await makeBuffers(cluster, adminApi, url)
  const { connection } = await connectTo(nats.url)
  const broker = createBroker(connection, { clock: systemClock() })
  return {
    cluster,
    adminApi,
    broker,
    sink,
    held: held.slice(1),
    busy: held[0]!,
    writer: new PackWriter(broker),
    async close() {
      await Promise.all([cluster.stop(), sink.stop()])
      broker.close()
      await connection.close()
      await nats.stop()
    },
  }
}

/** Uids: the busy one, then those that hold. */
async function makeBuffers(cluster: Cluster, adminApi: Api, url: string): Promise<string[]> {
  const projectId = await adminApi.createProject()
  const batch = { idleTimeoutMs: WEEK_MS, maxWaitFromFirstMs: WEEK_MS, maxItems: 10_000 }
  await adminApi.createBuffer(projectId, 'a-busy', {
    delivery: { url },
    batch: { idleTimeoutMs: 500, maxWaitFromFirstMs: 1_000, maxItems: 1_000, maxBytes: 1_000_000 },
  })
  for (let n = 0; n < BUFFERS; n++) {
    await adminApi.createBuffer(projectId, `patient-${n}`, { delivery: { url }, batch })
    await adminApi.createBuffer(projectId, `stopped-${n}`, { delivery: { url }, enabled: false })
  }
  const sql = postgres(cluster.databaseUrl, { max: 1 })
  const rows = await sql<{ uid: string }[]>`SELECT uid FROM buffers ORDER BY buffer_id`
  await sql.end()
  return rows.map(({ uid }) => uid)
}

/** Answers the bytes of what is held. Busy items come in between, so that the horizon moves as in any shard. */
async function fill({ held, busy, writer }: Setup, items: number): Promise<number> {
  let live = 0
  for (let from = 0; from < items; from += HELD.pack) {
    const pack = Array.from({ length: Math.min(HELD.pack, items - from) }, (_, n): Written => {
      // The items of a group are far apart: nothing about it is cheap because they came together.
      const group = (from + n) % Math.ceil(items / GROUP_ITEMS)
      return { bufferUid: held[group % held.length]!, groupKey: `held-${group}`, size: HELD.size }
    })
    live += await writer.write(pack)
    if (from % (10 * HELD.pack) === 0) await writer.write(busyPack(busy, from))
  }
  return live
}

function busyPack(bufferUid: string, n: number): Written[] {
  return Array.from({ length: BUSY.pack }, (_, i) => ({
    bufferUid,
    groupKey: `busy-${(n + i) % BUSY.groups}`,
    size: BUSY.size,
  }))
}

/** At a steady pace; answers the logs when both together were largest. */
async function passThrough({ busy, writer, broker }: Setup, items: number, bytes: number): Promise<LogBytes> {
  let worst: LogBytes = { inbox: 0, journal: 0 }
  const began = performance.now()
  for (let sent = 0, n = items, next = 0; sent < bytes; n += BUSY.pack) {
    sent += await writer.write(busyPack(busy, n))
    const ahead = (sent / BUSY_BYTES_PER_S) * 1_000 - (performance.now() - began)
    if (ahead > 0) await delay(ahead)
    if (performance.now() < next) continue
    next = performance.now() + SAMPLE_MS
    const logs = await logBytes(broker)
    if (sum(logs) > sum(worst)) worst = logs
  }
  return worst
}

/** Everything may go now. Items that were delivered in the first minute; fails when any of the whole run came twice. */
async function drain({ adminApi, sink, held }: Setup): Promise<number> {
  const before = await sink.ask({ kind: 'stats' })
  for (let n = 0; n < held.length / 2; n++) {
    await adminApi.patchBuffer(`patient-${n}`, { batch: { idleTimeoutMs: 100, maxWaitFromFirstMs: 100 } })
    await adminApi.patchBuffer(`stopped-${n}`, { enabled: true })
  }
  await delay(DRAIN_MS)
  const { items, distinct } = await sink.ask({ kind: 'stats' })
  if (items !== distinct) throw new Error(`${items - distinct} items came twice`)
  return items - before.items
}

function rowOf(name: string, logs: LogBytes, live: number, actor: ClusterNode): string[] {
  const { now, peak } = memoryOf(actor)
  const share = (bytes: number) => (bytes / live).toFixed(2)
  return [
    ...[name, mb(logs.inbox), mb(logs.journal), share(sum(logs)), share(Math.max(0, sum(logs) - FREE_BYTES))],
    ...[mb(now), mb(peak)],
  ]
}

function sum({ inbox, journal }: LogBytes): number {
  return inbox + journal
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(0)
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1)
}
