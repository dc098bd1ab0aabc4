/**
 * The longest turn of an actor's event loop while it has much to go through at once: a shard is claimed that has a large state, its
 * snapshot is written, and a group comes due that holds a tenth of a million items.
 */
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import { createBroker, type NatsBroker } from '../internal/nats/broker.ts'
import { DEFAULT_LEASE_TTL_MS, leaseTimes } from '../internal/nats/leases/lease-times.ts'
import { systemClock } from '../internal/runtime/system-clock.ts'
import { SNAPSHOTS, snapshotsOf } from '../internal/shard/archive/snapshot-subjects.ts'
import { connectTo } from '../test/nats/support.ts'
import type { Api } from '../test/support/api.ts'
import { Cluster, type ClusterNode } from '../test/support/cluster.ts'
import { eventually } from '../test/support/eventually.ts'
import { ownNats } from '../test/support/servers.ts'
import { spread, table } from './figures.ts'
import { type Sink, startSink } from './load/programs.ts'
import { replayed } from './million/shard.ts'
import { tableOfGoals } from './peers/goals.ts'
import { leave } from './turns/logs.ts'
import { REPORT_OPTIONS, REPORT_SIGNAL, TURNS_EVENT, type TurnReport, workOf } from './turns/report.ts'

const WEEK_MS = 604_800_000
/** Between two attempts: no open batch is sent meanwhile. */
const DAY_MS = 86_400_000
const LIMIT_MS = 900_000
const GOAL_MS = 20
const BATCH_ITEMS = 100
/** After the last of what is measured, ms: what follows from it is over. */
const SETTLE_MS = 3_000

export interface TurnsSize {
  readonly rounds: number
  readonly finished: number
  /** With those that come due. */
  readonly kept: number
  readonly openBatches: number
  /** Of the group that comes due in each round. */
  readonly dueItems: number
}

interface Lab {
  readonly cluster: Cluster
  readonly api: Api
  readonly broker: NatsBroker
  readonly sink: Sink
  readonly dueItems: number
  readonly close: () => Promise<void>
}

const WINDOWS = [
  'the journal is claimed without a snapshot',
  'its groups go on, and its first snapshot is written',
  'the journal is claimed with a snapshot',
  'its groups go on',
  'a group comes due',
] as const
type Window = (typeof WINDOWS)[number]
type Note = (name: Window, report: TurnReport) => void

const HEAD = [
  'meanwhile',
  'longest turn, CPU ms without collections',
  'CPU ms',
  'wall ms',
  'longest collection ms',
]

/** Markdown. */
export async function measureTurns(size: TurnsSize): Promise<string> {
  const lab = await setUp(size)
  const reports = new Map<Window, TurnReport[]>(WINDOWS.map((name) => [name, []]))
  const note: Note = (name, report) => {
    reports.get(name)!.push(report)
  }
  let owner = await lab.cluster.start('actor')
  await eventually(() => hasSnapshot(lab.broker), { timeoutMs: LIMIT_MS, everyMs: 500 })
  for (let round = 0; round < size.rounds; round++) owner = await measureRound(lab, owner, round, note)
  await owner.stop()
  await lab.close()
  return pageOf(reports)
}

async function setUp({ rounds, finished, kept, openBatches, dueItems }: TurnsSize): Promise<Lab> {
  const nats = await ownNats()
  const env = {
    PENSTOCK_NATS_URL: nats.url,
    PENSTOCK_SHARDS: '1',
    PENSTOCK_LOG_LEVEL: 'info',
    // A journal that is never cut can be claimed without a snapshot.
    PENSTOCK_SYNC: '1h',
  }
  const cluster = await Cluster.create(env)
  const api = cluster.api(await cluster.start('admin'))
  const { sink, url } = await startSink()
  const [uids, { connection }] = [await makeBuffers(cluster, api, url, rounds), await connectTo(nats.url)]
  const broker = createBroker(connection, { clock: systemClock() })
  // The first one makes the logs.
  await (await cluster.start('actor')).stop()
  const dueUid = (n: number) => uids[Math.floor(n / dueItems)]
  await leave(broker, {
    finished,
    open: { batches: openBatches, items: BATCH_ITEMS, bufferUid: uids.at(-1)! },
    kept: {
      items: kept,
      groupOf: (n) =>
        n < rounds * dueItems
          ? { bufferUid: dueUid(n)!, groupKey: 'one' }
          : { bufferUid: uids.at(-1)!, groupKey: `kept-${n}` },
    },
  })
  const close = async () => {
    await Promise.all([cluster.stop(), sink.stop()])
    broker.close()
    await connection.close()
    await nats.stop()
  }
  return { cluster, api, broker, sink, dueItems, close }
}

/** Uids: of a disabled one for each round, and of one that waits. */
async function makeBuffers(cluster: Cluster, api: Api, url: string, rounds: number): Promise<string[]> {
  const projectId = await api.createProject()
  const delivery = { url }
  const overflow = { maxGroupItems: 1_000_000, maxGroupBytes: 1_073_741_824 }
  const batch = { idleTimeoutMs: WEEK_MS, maxWaitFromFirstMs: WEEK_MS, maxItems: BATCH_ITEMS }
  for (let round = 0; round < rounds; round++)
    await api.createBuffer(projectId, `due-${round}`, { delivery, batch, overflow, enabled: false })
  const throughput = { backoff: { initialMs: DAY_MS, maxMs: DAY_MS } }
  const patient = { ...batch, maxItems: 10_000 }
  await api.createBuffer(projectId, 'waiting', { delivery, batch: patient, overflow, throughput })
  const sql = postgres(cluster.databaseUrl, { max: 1 })
  const rows = await sql<{ uid: string }[]>`SELECT uid FROM buffers ORDER BY buffer_id`
  await sql.end()
  return rows.map(({ uid }) => uid)
}

/** Each claim is one of a node that was there before: what a start takes does not count. Answers the owner. */
async function measureRound(lab: Lab, owner: ClusterNode, round: number, note: Note): Promise<ClusterNode> {
  const { cluster, broker } = lab
  const first = await startIdle(cluster)
  await broker.archive(0).remove(SNAPSHOTS)
  await owner.stop()
  await replayed(first)
  note(WINDOWS[0], await report(first))
  await eventually(() => hasSnapshot(broker), { timeoutMs: LIMIT_MS, everyMs: 50 })
  await delay(SETTLE_MS)
  note(WINDOWS[1], await report(first))

  const second = await startIdle(cluster)
  await first.stop()
  await replayed(second)
  note(WINDOWS[2], await report(second))
  await delay(SETTLE_MS)
  note(WINDOWS[3], await report(second))

  await deliverDue(lab, round)
  note(WINDOWS[4], await report(second))
  return second
}

/** An actor that would take over at once, and has told its turns so far. */
async function startIdle(cluster: Cluster): Promise<ClusterNode> {
  const actor = await cluster.start('actor', { NODE_OPTIONS: REPORT_OPTIONS })
  const { unsureMs, heartbeatMs } = leaseTimes(DEFAULT_LEASE_TTL_MS)
  await delay(unsureMs + heartbeatMs)
  await report(actor)
  return actor
}

async function report({ service }: ClusterNode): Promise<TurnReport> {
  const reports = () => service.events.filter(({ msg }) => msg === TURNS_EVENT)
  const before = reports().length
  service.child.kill(REPORT_SIGNAL)
  return (await eventually(() => reports()[before] ?? false)) as unknown as TurnReport
}

async function hasSnapshot(broker: NatsBroker): Promise<boolean> {
  const { subjects } = await broker.archive(0).list(SNAPSHOTS)
  return snapshotsOf(subjects).some(({ hasEnd }) => hasEnd)
}

/** Resolves when the items of that round have all come. */
async function deliverDue({ api, sink, dueItems }: Lab, round: number): Promise<void> {
  const { items: before } = await sink.ask({ kind: 'stats' })
  await api.patchBuffer(`due-${round}`, { enabled: true })
  const arrived = async () => (await sink.ask({ kind: 'stats' })).items - before >= dueItems
  await eventually(arrived, { timeoutMs: LIMIT_MS, everyMs: 200 })
}

function pageOf(reports: ReadonlyMap<Window, readonly TurnReport[]>): string {
  const rows = [...reports].map(([name, measured]) => {
    const column = (figure: (report: TurnReport) => number) => spread(measured.map(figure), 1)
    return [
      name,
      column(({ work }) => workOf(work)),
      column(({ cpu }) => cpu.cpuMs),
      column(({ wall }) => wall.wallMs),
      column(({ gcMs }) => gcMs),
    ]
  })
  const goals = [...reports].map(([name, measured]) => ({
    figure: `longest turn without collections, CPU ms: ${name}`,
    bound: ['≤', GOAL_MS] as ['≤', number],
    values: measured.map(({ work }) => workOf(work)),
  }))
  return `${table(HEAD, rows)}\n\n${tableOfGoals(goals)}`
}
