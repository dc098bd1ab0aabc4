/**
 * Points for the constants of the model, and others to check it by: CPU of a cluster's processes under loads that differ
 * in items a pack (rate, shards) and in items a batch (keys). Items come at a fixed rate: how a closed loop's arrivals gather
 * says nothing about senders that know nothing of each other. One installation runs at a time: idle ones take CPU of NATS and
 * Postgres too.
 */
import type { ClusterNode } from '../../test/support/cluster.ts'
import { readMetrics } from '../../test/support/metrics.ts'
import { accessTo, natsServer, ownNats, ownNatsCluster } from '../../test/support/servers.ts'
import {
  type Brokers,
  cpuMsOf,
  type Installation,
  install,
  metricsOf,
  targetOf,
} from '../cluster/installation.ts'
import { median } from '../figures.ts'
import { untilDelivered } from '../ingest.ts'
import { type Generator, type Sink, startGenerator, startSink } from '../load/programs.ts'
import type { Point } from './fit.ts'
import { ROLES, type Role } from './model.ts'
import { syncMsOf } from './sync-time.ts'

interface Load {
  readonly shards: number
  /** Items a second. */
  readonly rate: number
  readonly keys: number
}

/** Constants come from these. */
const FITTED: readonly Load[] = [
  { shards: 1, rate: 200, keys: 100 },
  { shards: 1, rate: 1_500, keys: 100 },
  { shards: 1, rate: 3_000, keys: 10_000 },
  { shards: 1, rate: 6_000, keys: 1_000 },
  { shards: 1, rate: 8_000, keys: 100 },
  { shards: 8, rate: 200, keys: 1_000 },
  { shards: 8, rate: 1_500, keys: 10_000 },
  { shards: 8, rate: 3_000, keys: 1_000 },
  { shards: 8, rate: 5_000, keys: 100 },
]
/** Not these: they are what the model has to predict. */
const CHECKED: readonly Load[] = [
  { shards: 1, rate: 4_000, keys: 100 },
  { shards: 1, rate: 2_000, keys: 1_000 },
  { shards: 4, rate: 2_000, keys: 10_000 },
  { shards: 4, rate: 4_000, keys: 1_000 },
]
/** With three brokers: two for constants, the last to be predicted. */
const REPLICATED: readonly Load[] = [
  { shards: 1, rate: 3_000, keys: 1_000 },
  { shards: 1, rate: 1_000, keys: 100 },
  { shards: 1, rate: 2_000, keys: 1_000 },
]
/** With sync `always`: to be predicted from how long a sync takes. */
const SYNCED: readonly Load[] = [
  { shards: 1, rate: 1_500, keys: 100 },
  { shards: 1, rate: 4_000, keys: 1_000 },
]
/** Not counted: code that runs for the first time is slow. */
const FIRST = { rate: 5_000, keys: 1_000 }
const CONNECTIONS = 64
const WINDOW = { idleTimeoutMs: 250, maxWaitFromFirstMs: 500, maxItems: 50 }
const SIZE = 1_024
const FIRST_MS = 10_000
const MEASURE_MS = 5_000
const ROUNDS = 3

export interface Calibration {
  fitted: Point[]
  checked: Point[]
  /** With three brokers and three copies. */
  three: Point[]
  threeChecked: Point[]
  /** With one broker that syncs each append, which takes it so long, ms. */
  synced: { syncMs: number; checked: Point[] }
}

interface Lab {
  readonly generator: Generator
  readonly sink: Sink
  /** Of the next item. */
  firstId: number
}

export async function calibrate(): Promise<Calibration> {
  const { sink, url } = await startSink()
  const lab: Lab = { generator: startGenerator(), sink, firstId: 0 }
  const loads = [...FITTED, ...CHECKED]
  const points: Point[] = []
  for (const shards of new Set(loads.map((load) => load.shards))) {
    const on = await install({ actors: 1, ingresses: 1, shards }, WINDOW, url)
    const some = loads.filter((load) => load.shards === shards)
    const measured = await measureInTurns(lab, on, some)
    for (const [n, load] of some.entries()) points[loads.indexOf(load)] = measured[n]!
    await on.cluster.stop()
  }
  const three = await measureThree(lab, url)
  const synced = await measureSynced(lab, url)
  await Promise.all([lab.generator.stop(), sink.stop()])
  return {
    fitted: points.slice(0, FITTED.length),
    checked: points.slice(FITTED.length),
    three: three.slice(0, 2),
    threeChecked: three.slice(2),
    synced,
  }
}

async function measureThree(lab: Lab, sinkUrl: string): Promise<Point[]> {
  const started = await ownNatsCluster()
  const pids = started.members.map(({ server }) => server.pid)
  const points = await measureOn(lab, { urls: started.urls, pids }, REPLICATED, sinkUrl)
  await started.stop()
  return points
}

async function measureSynced(lab: Lab, sinkUrl: string): Promise<Calibration['synced']> {
  const syncing = await ownNats({ sync: 'always' })
  const syncMs = await syncMsOf(accessTo(syncing), accessTo(await natsServer()))
  const checked = await measureOn(lab, { urls: [syncing.url], pids: [syncing.pid] }, SYNCED, sinkUrl)
  await syncing.stop()
  return { syncMs, checked }
}

/** An installation of one shard on brokers of its own. */
async function measureOn(lab: Lab, brokers: Brokers, loads: readonly Load[], sinkUrl: string) {
  const on = await install({ actors: 1, ingresses: 1, shards: 1 }, WINDOW, sinkUrl, brokers)
  const points = await measureInTurns(lab, on, loads)
  await on.cluster.stop()
  return points
}

/** Medians, in the order of `loads`. */
async function measureInTurns(lab: Lab, on: Installation, loads: readonly Load[]): Promise<Point[]> {
  await measure(lab, on, FIRST, FIRST_MS)
  const measured: Point[][] = loads.map(() => [])
  for (let round = 0; round < ROUNDS; round++) {
    for (const [n, load] of loads.entries()) measured[n]!.push(await measure(lab, on, load, MEASURE_MS))
  }
  return measured.map(middle)
}

async function measure(
  lab: Lab,
  on: Installation,
  { rate, keys }: Omit<Load, 'shards'>,
  ms: number,
): Promise<Point> {
  const { generator, sink } = lab
  await sink.ask({ kind: 'reset' })
  const before = { at: performance.now(), cpu: await cpuMsOf(on), counts: await countsOf(on) }
  const sent = await generator.ask({
    kind: 'recorded',
    ...targetOf(on, on.ingresses[0]!),
    size: SIZE,
    explicit: true,
    connections: CONNECTIONS,
    firstId: lab.firstId,
    keys: { count: keys },
    seed: 1,
    ms,
    rate,
  })
  const accepted = sent.keys.length
  if (sent.firstFailure !== undefined) throw new Error(`a request failed: ${sent.firstFailure}`)
  lab.firstId += accepted
  await untilDelivered(sink, accepted)
  const after = { at: performance.now(), cpu: await cpuMsOf(on), counts: await countsOf(on) }
  const count = (of: keyof Counts) => after.counts[of] - before.counts[of]
  const cpuUs = ROLES.map((role, n) => [role, ((after.cpu[n]! - before.cpu[n]!) * 1_000) / accepted])
  return {
    shards: on.shards,
    keys,
    itemsPerSecond: (accepted * 1_000) / ms,
    secondsAnItem: (after.at - before.at) / 1_000 / accepted,
    packItems: count('items') / count('packs'),
    batchItems: accepted / count('batches'),
    cpuUs: Object.fromEntries(cpuUs) as Record<Role, number>,
  }
}

interface Counts {
  items: number
  packs: number
  batches: number
}

async function countsOf({ ingresses, actors }: Installation): Promise<Counts> {
  const sum = async (nodes: readonly ClusterNode[], name: string) => {
    const texts = await Promise.all(nodes.map(metricsOf))
    return texts.reduce((all, text) => all + readMetrics(text, name), 0)
  }
  return {
    items: await sum(ingresses, 'penstock_pack_items_sum'),
    packs: await sum(ingresses, 'penstock_pack_items_count'),
    batches: await sum(actors, 'penstock_batch_items_count'),
  }
}

/** Each figure by itself. */
function middle(points: readonly Point[]): Point {
  const of = (figure: (point: Point) => number) => median(points.map(figure))
  const [{ shards, keys }] = points as [Point]
  const cpuUs = ROLES.map((role) => [role, of((point) => point.cpuUs[role])])
  return {
    shards,
    keys,
    itemsPerSecond: of(({ itemsPerSecond }) => itemsPerSecond),
    secondsAnItem: of(({ secondsAnItem }) => secondsAnItem),
    packItems: of(({ packItems }) => packItems),
    batchItems: of(({ batchItems }) => batchItems),
    cpuUs: Object.fromEntries(cpuUs) as Record<Role, number>,
  }
}
