/**
 * Ingest of Penstock beside two packed floors and a hand-written service: all of them run all the time and are
 * loaded in turns, so that whatever else the machine does falls on all of them.
 */

import { eventually } from '../support/eventually.ts'
import { median, spread, table } from './figures.ts'
import type { Sent } from './load/generator.ts'
import { type Generator, type Sink, startGenerator, startSink } from './load/programs.ts'
import { cpuOf, machineBusyMs, sumOf } from './processes.ts'
import { type System, startPenstock, startRival } from './systems.ts'

/** Size in bytes. */
export const LOAD = { connections: 64, keys: 1_000, size: 1_024 }
const WARM_MS = 1_000
const MEASURE_MS = 3_000
const ROUNDS = 5
/** Services that have run for a while are meant: their paths have to be compiled first. */
const FIRST_MS = 10_000
export const WINDOW = { idleTimeoutMs: 1_000, maxWaitFromFirstMs: 2_000, maxItems: 50 }
const DRAIN_MS = 20_000

interface Round {
  sent: Sent
  /** CPU an item of all processes of the system until everything was delivered, µs. */
  cpuUs: number
  cpuByKind: Map<string, number>
  /** Share of the machine's CPU time that neither system nor load used. */
  foreign: number
}

export interface IngestOptions {
  sync: string
  rounds?: number
  systems?: string[]
  /** Message ids by the sender: deduplicated. */
  explicit?: boolean
}

interface Contestant {
  readonly name: string
  readonly system: System
  /** Accepted items go to the sink, and a round ends when all have come. */
  readonly delivers: boolean
}

/** Markdown of one comparison. */
export async function compareIngest(options: IngestOptions): Promise<string> {
  const lab = await openLab()
  const penstock = await contestPenstock('penstock', lab, { sync: options.sync })
  const names = (['floor', 'floor, parsing', 'hand'] as const).filter(
    (name) => options.systems?.includes(name) ?? true,
  )
  const contestants = [penstock]
  for (const name of names) {
    contestants.push({ name, system: await startRival(name, options.sync), delivers: false })
  }
  return compare(contestants, lab, options)
}

/** Markdown: `npm start` with two processes, one that takes requests and one that runs the shards, beside one that does both. */
export async function compareProcesses(options: Pick<IngestOptions, 'sync' | 'rounds'>): Promise<string> {
  const lab = await openLab()
  const contestants: Contestant[] = []
  for (const [count, name] of [
    [2, 'two processes'],
    [1, 'one process'],
  ] as const) {
    const env = { PENSTOCK_PROCESSES: String(count) }
    contestants.push(await contestPenstock(name, lab, { sync: options.sync, env }))
  }
  return compare(contestants, lab, options)
}

interface Lab {
  readonly generator: Generator
  readonly sink: Sink
  readonly sinkUrl: string
}

async function openLab(): Promise<Lab> {
  const { sink, url } = await startSink()
  return { generator: startGenerator(), sink, sinkUrl: url }
}

async function contestPenstock(
  name: string,
  { sinkUrl }: Lab,
  options: Parameters<typeof startPenstock>[0],
): Promise<Contestant> {
  const system = await startPenstock(options)
  await system.createBuffer({ bufferId: 'items', batch: WINDOW, deliverTo: sinkUrl })
  return { name, system, delivers: true }
}

/** The others beside the first of them. */
async function compare(
  contestants: readonly Contestant[],
  { generator, sink }: Lab,
  { rounds: count = ROUNDS, explicit = true }: Pick<IngestOptions, 'rounds' | 'explicit'>,
): Promise<string> {
  const rounds = new Map<Contestant, Round[]>(contestants.map((contestant) => [contestant, []]))
  let firstId = 0
  for (const { system, delivers } of contestants) {
    await sink.ask({ kind: 'reset' })
    const load = loadOn(system, firstId, explicit)
    const { accepted, failed } = await generator.ask({ ...load, warmMs: 0, measureMs: FIRST_MS })
    firstId += accepted + failed
    if (delivers) await untilDelivered(sink, accepted)
  }
  for (let round = 0; round < count; round++) {
    for (const contestant of contestants) {
      const measured = await measure(contestant, generator, sink, firstId, explicit)
      firstId += measured.sent.accepted + measured.sent.failed
      rounds.get(contestant)!.push(measured)
    }
  }
  await Promise.all(contestants.map(({ system }) => system.stop()))
  await Promise.all([generator.stop(), sink.stop()])
  return report(rounds)
}

function loadOn({ ingestUrl, headers }: System, firstId: number, explicit: boolean) {
  return { kind: 'closed' as const, url: ingestUrl, headers, firstId, explicit, ...LOAD }
}

async function measure(
  { system, delivers }: Contestant,
  generator: Generator,
  sink: Sink,
  firstId: number,
  explicit: boolean,
): Promise<Round> {
  await sink.ask({ kind: 'reset' })
  const before = { system: system.cpu(), load: loadCpu(generator, sink), machine: machineBusyMs() }
  const load = loadOn(system, firstId, explicit)
  const sent = await generator.ask({ ...load, warmMs: WARM_MS, measureMs: MEASURE_MS })
  if (delivers) await untilDelivered(sink, sent.accepted)
  const after = { system: system.cpu(), load: loadCpu(generator, sink), machine: machineBusyMs() }
  const cpuByKind = new Map<string, number>()
  for (const [kind, ms] of after.system) cpuByKind.set(kind, ms - (before.system.get(kind) ?? 0))
  const ownMs = sumOf(cpuByKind)
  const machineMs = after.machine - before.machine
  return {
    sent,
    cpuUs: (ownMs * 1_000) / sent.accepted,
    cpuByKind: new Map([...cpuByKind].map(([kind, ms]) => [kind, (ms * 1_000) / sent.accepted])),
    foreign: Math.max(0, (machineMs - ownMs - (after.load - before.load)) / machineMs),
  }
}

/** Every accepted item once: more or less is no figure but a fault. */
export async function untilDelivered(sink: Sink, accepted: number): Promise<void> {
  await eventually(async () => (await sink.ask({ kind: 'stats' })).distinct >= accepted, {
    timeoutMs: DRAIN_MS,
    everyMs: 100,
  })
  const { items, distinct } = await sink.ask({ kind: 'stats' })
  if (items !== accepted) throw new Error(`${accepted} accepted, ${distinct} delivered, ${items} times`)
}

function loadCpu(...programs: { pid: number }[]): number {
  return programs.reduce((sum, { pid }) => sum + sumOf(cpuOf(pid)), 0)
}

function report(rounds: Map<Contestant, Round[]>): string {
  const [[{ name: first }, own]] = [...rounds] as [[Contestant, Round[]]]
  const rows = [...rounds].map(([{ name }, measured]) => {
    const perSecond = measured.map(({ sent }) => sent.perSecond)
    const ratios = measured.map(({ sent }, round) => own[round]!.sent.perSecond / sent.perSecond)
    const kinds = ['app', 'nats', 'postgres'].map((kind) =>
      median(measured.map(({ cpuByKind }) => cpuByKind.get(kind) ?? 0)).toFixed(0),
    )
    return [
      name,
      spread(perSecond, 0),
      name === first ? '' : spread(ratios, 2),
      `${median(measured.map(({ sent }) => sent.ackP50Ms)).toFixed(1)} / ${median(measured.map(({ sent }) => sent.ackP99Ms)).toFixed(1)}`,
      `${spread(
        measured.map(({ cpuUs }) => cpuUs),
        0,
      )}`,
      kinds.join(' + '),
      `${(100 * median(measured.map(({ foreign }) => foreign))).toFixed(0)} %`,
    ]
  })
  const failed = [...rounds.values()].flat().reduce((sum, { sent }) => sum + sent.failed, 0)
  const head = [
    '',
    'accepted/s',
    `${first} ÷ it`,
    'ack p50 / p99 ms',
    'CPU µs an item',
    'app + NATS + Postgres',
    'foreign CPU',
  ]
  return `${table(head, rows)}\n\n${failed} requests failed.`
}
