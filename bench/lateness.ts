/**
 * Flush lateness with many open groups: most of them only wait (and are fed now and then), while others come
 * due at a rate that leaves the machine idle most of the time.
 */
import { eventually } from '../test/support/eventually.ts'
import { median, quantile, spread, table } from './figures.ts'
import type { Acked } from './load/generator.ts'
import { monotonicMs } from './load/program.ts'
import {
  type Generator,
  type Sink,
  startGenerator,
  startSink,
  startWatch,
  type Watch,
} from './load/programs.ts'
import { type Buckets, between, bucketOf, histogramOf, plus, shareUpTo } from './metrics.ts'
import { type Goal, tableOfGoals } from './peers/goals.ts'
import { cpuOf, machineBusyMs, stolenMs, sumOf } from './processes.ts'
import { type Penstock, type PenstockOptions, SECRET, startPenstock } from './systems.ts'

const IDLE_MS = 1_000
const FOREVER_MS = 3_600_000
/** Batches a second that come due; as many items go to groups that wait. */
const RATE = 100
export const ROUND_SECONDS = 8
const ROUNDS = 9
/** An idle process that waits longer than this for one of a hundred timers is on a machine that pauses, ms. */
const PAUSE_MS = 5
const ARRIVAL_MS = 20_000
const LOAD = { connections: 64, size: 1_024, explicit: true, secret: SECRET }

const HEAD = [
  'open groups',
  'batches',
  'sealed late, p50 / p99 ms (own histogram)',
  'within 20 ms',
  'at the sink, p50 ms',
  'p99 ms of each round',
  'timers of an idle process late, p99 ms',
  'taken by the host, cores',
  'greatest ms',
  'ack p50 / p99 ms',
  'cores busy, by this / in all',
]

export interface Lab {
  penstock: Penstock
  generator: Generator
  sink: Sink
  watch: Watch
  nextId: number
  openGroups: number
  /** Of the sink. */
  url: string
}

export interface Round {
  /** By the service's own histogram. */
  sealed: Buckets
  /** Arrival minus due time, ms. */
  late: number[]
  /** Of the timers of a process that does nothing else, ms. */
  idleLate: Float64Array
  /** Cores that the host gave to others while somebody here had work. */
  stolen: number
  ackP50Ms: number
  ackP99Ms: number
  /** Cores busy by service and load, and by everything. */
  cores: [own: number, all: number]
}

/** Open groups, ascending, each with the p99 of its goal, if it has one, ms. */
export type Numbers = readonly [openGroups: number, goalMs?: number][]

/** Markdown: one row for each number of open groups. */
export async function measureLateness(sync: string, numbers: Numbers): Promise<string> {
  const lab = await openLab(sync)
  const rows: string[][] = []
  const goals: Goal[] = []
  for (const [groups, goalMs] of numbers) {
    await openUpTo(lab, groups)
    const rounds: Round[] = []
    while (rounds.length < ROUNDS) rounds.push(await measure(lab))
    rows.push(rowOf(groups, rounds))
    const figure = `p99 at the sink, ms, with ${groups.toLocaleString('en')} open groups`
    if (goalMs === undefined) continue
    const steady = rounds.filter((round) => idleP99(round) <= PAUSE_MS)
    const which = `${figure}, the ${steady.length} of ${ROUNDS} rounds without pauses of the machine`
    goals.push({ figure, bound: ['≤', goalMs], values: rounds.map(p99) })
    goals.push({ figure: which, bound: ['≤', goalMs], values: steady.map(p99) })
  }
  await closeLab(lab)
  return `${table(HEAD, rows)}\n\n${tableOfGoals(goals)}`
}

/** One round was made without measuring: code that runs for the first time is slow. */
export async function openLab(sync: string, more: Partial<PenstockOptions> = {}): Promise<Lab> {
  const { sink, url } = await startSink()
  const penstock = await startPenstock({ sync, ...more })
  const lab = {
    sink,
    url,
    penstock,
    generator: startGenerator(),
    watch: startWatch(),
    nextId: 0,
    openGroups: 0,
  }
  await createBuffers(penstock, url)
  await measure(lab)
  return lab
}

export async function closeLab({ penstock, generator, sink, watch }: Lab): Promise<void> {
  await Promise.all([penstock.stop(), generator.stop(), sink.stop(), watch.stop()])
}

export function p99({ late }: Round): number {
  return quantile(late, 0.99)
}

function idleP99({ idleLate }: Round): number {
  return quantile([...idleLate], 0.99)
}

function rowOf(groups: number, rounds: readonly Round[]): string[] {
  const late = rounds.flatMap((round) => round.late)
  const sealed = rounds.map((round) => round.sealed).reduce(plus)
  const mid = (of: (round: Round) => number, digits: number) => median(rounds.map(of)).toFixed(digits)
  return [
    groups.toLocaleString('en'),
    String(late.length),
    `${bucketOf(sealed, 0.5)} / ${bucketOf(sealed, 0.99)}`,
    `${(100 * shareUpTo(sealed, 20)).toFixed(1)} %`,
    mid((round) => quantile(round.late, 0.5), 1),
    spread(rounds.map(p99), 1),
    spread(rounds.map(idleP99), 1),
    spread(
      rounds.map(({ stolen }) => stolen),
      2,
    ),
    Math.max(...late).toFixed(1),
    `${mid(({ ackP50Ms }) => ackP50Ms, 1)} / ${mid(({ ackP99Ms }) => ackP99Ms, 1)}`,
    `${mid(({ cores: [own] }) => own, 2)} / ${mid(({ cores: [, all] }) => all, 2)}`,
  ]
}

async function createBuffers(penstock: Penstock, deliverTo: string): Promise<void> {
  const forever = { idleTimeoutMs: FOREVER_MS, maxWaitFromFirstMs: FOREVER_MS, maxItems: 10_000 }
  await penstock.createBuffer({ bufferId: 'waiting', batch: forever, deliverTo, secret: SECRET })
  const due = { idleTimeoutMs: IDLE_MS, maxWaitFromFirstMs: FOREVER_MS }
  await penstock.createBuffer({ bufferId: 'items', batch: due, deliverTo, secret: SECRET })
}

async function openUpTo(lab: Lab, groups: number): Promise<void> {
  const { penstock, generator } = lab
  const [items, firstId] = [groups - lab.openGroups, lab.nextId]
  const from = { url: penstock.urlOf('waiting'), headers: penstock.headers, firstId }
  const { failed } = await generator.ask({ kind: 'fill', ...LOAD, ...from, firstKey: lab.openGroups, items })
  if (failed > 0) throw new Error(`${failed} of ${items} items were not accepted`)
  lab.openGroups = groups
  lab.nextId += items
}

/** How late batches of the buffer `items` come, which are due by its idle time. */
export async function measure(lab: Lab): Promise<Round> {
  const { penstock, generator, sink, watch } = lab
  await Promise.all([sink.ask({ kind: 'reset' }), watch.ask({ kind: 'begin' })])
  const before = {
    ownMs: ownCpuMs(lab),
    busyMs: machineBusyMs(),
    stolenMs: stolenMs(),
    at: monotonicMs(),
    sealed: await sealedLate(penstock),
  }
  const from = { url: penstock.ingestUrl, headers: penstock.headers, firstId: lab.nextId }
  const others = { url: penstock.urlOf('waiting'), keys: Math.max(1, lab.openGroups) }
  const acked = await generator.ask({
    kind: 'open',
    ...LOAD,
    ...from,
    rate: RATE,
    seconds: ROUND_SECONDS,
    others,
  })
  lab.nextId += 2 * RATE * ROUND_SECONDS
  const late = await lateness(acked, sink)
  const idleLate = await watch.ask({ kind: 'end' })
  const cores = (ms: number) => ms / (monotonicMs() - before.at)
  return {
    late,
    idleLate,
    stolen: cores(stolenMs() - before.stolenMs),
    sealed: between(before.sealed, await sealedLate(penstock)),
    ackP50Ms: acked.ackP50Ms,
    ackP99Ms: acked.ackP99Ms,
    cores: [cores(ownCpuMs(lab) - before.ownMs), cores(machineBusyMs() - before.busyMs)],
  }
}

/** Of service, generator and sink. */
function ownCpuMs({ penstock, generator, sink }: Lab): number {
  return sumOf(penstock.cpu()) + sumOf(cpuOf(generator.pid)) + sumOf(cpuOf(sink.pid))
}

function sealedLate({ opsUrl }: Penstock) {
  return histogramOf(opsUrl, 'penstock_flush_lateness')
}

/** Arrival minus due time of each item with a key of its own: due is its acknowledgement plus the idle time. */
async function lateness({ own, failed }: Acked, sink: Sink): Promise<number[]> {
  if (failed > 0) throw new Error(`${failed} requests failed`)
  const arrivals = await eventually(
    async () => {
      const { distinct } = await sink.ask({ kind: 'stats' })
      if (distinct < own.length) return false
      const found = new Map(await sink.ask({ kind: 'arrivals' }))
      return own.every(([id]) => found.has(id)) && found
    },
    { timeoutMs: ARRIVAL_MS, everyMs: 100 },
  )
  return own.map(([id, ackedAt]) => arrivals.get(id)! - ackedAt - IDLE_MS)
}
