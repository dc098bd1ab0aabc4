/**
 * Flush lateness with many open groups: most of them only wait (and are fed now and then), while others come
 * due at a rate that leaves the machine idle most of the time.
 */
import { eventually } from '../support/eventually.ts'
import { quantile, table } from './figures.ts'
import type { Acked } from './load/generator.ts'
import { monotonicMs } from './load/program.ts'
import { type Generator, type Sink, startGenerator, startSink } from './load/programs.ts'
import { between, bucketOf, histogramOf, shareUpTo } from './metrics.ts'
import { cpuOf, machineBusyMs, sumOf } from './processes.ts'
import { type Penstock, startPenstock } from './systems.ts'

const IDLE_MS = 1_000
const FOREVER_MS = 3_600_000
/** Batches a second that come due; as many items go to groups that wait. */
const RATE = 100
const SECONDS = 8
const ARRIVAL_MS = 20_000
const LOAD = { connections: 64, size: 1_024, explicit: true }

const HEAD = [
  'open groups',
  'batches',
  'sealed late, p50 / p99 ms (own histogram)',
  'within 20 ms',
  'at the sink, p50 / p99 / max ms',
  'ack p50 / p99 ms',
  'cores busy, by this / in all',
]

interface Lab {
  penstock: Penstock
  generator: Generator
  sink: Sink
  nextId: number
  openGroups: number
}

/** Markdown: one row for each number of open groups, ascending. */
export async function measureLateness(sync: string, openGroups: readonly number[]): Promise<string> {
  const { sink, url } = await startSink()
  const lab = {
    sink,
    generator: startGenerator(),
    penstock: await startPenstock({ sync }),
    nextId: 0,
    openGroups: 0,
  }
  await createBuffers(lab.penstock, url)
  // Once without measuring: code that runs for the first time is slow.
  await measure(lab)
  const rows: string[][] = []
  for (const groups of openGroups) {
    await openUpTo(lab, groups)
    rows.push(await measure(lab))
  }
  await Promise.all([lab.penstock.stop(), lab.generator.stop(), sink.stop()])
  return table(HEAD, rows)
}

async function createBuffers(penstock: Penstock, deliverTo: string): Promise<void> {
  const forever = { idleTimeoutMs: FOREVER_MS, maxWaitFromFirstMs: FOREVER_MS, maxItems: 10_000 }
  await penstock.createBuffer({ bufferId: 'waiting', batch: forever, deliverTo })
  const due = { idleTimeoutMs: IDLE_MS, maxWaitFromFirstMs: FOREVER_MS }
  await penstock.createBuffer({ bufferId: 'items', batch: due, deliverTo })
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

async function measure(lab: Lab): Promise<string[]> {
  const { penstock, generator, sink } = lab
  await sink.ask({ kind: 'reset' })
  const before = {
    ownMs: ownCpuMs(lab),
    busyMs: machineBusyMs(),
    at: monotonicMs(),
    sealed: await sealedLate(penstock),
  }
  const from = { url: penstock.ingestUrl, headers: penstock.headers, firstId: lab.nextId }
  const others = { url: penstock.urlOf('waiting'), keys: Math.max(1, lab.openGroups) }
  const acked = await generator.ask({ kind: 'open', ...LOAD, ...from, rate: RATE, seconds: SECONDS, others })
  lab.nextId += 2 * RATE * SECONDS
  const late = await lateness(acked, sink)
  const cores = (ms: number) => (ms / (monotonicMs() - before.at)).toFixed(2)
  const busy = `${cores(ownCpuMs(lab) - before.ownMs)} / ${cores(machineBusyMs() - before.busyMs)}`
  const sealed = between(before.sealed, await sealedLate(penstock))
  return [
    lab.openGroups.toLocaleString('en'),
    String(late.length),
    `${bucketOf(sealed, 0.5)} / ${bucketOf(sealed, 0.99)}`,
    `${(100 * shareUpTo(sealed, 20)).toFixed(1)} %`,
    `${quantile(late, 0.5).toFixed(1)} / ${quantile(late, 0.99).toFixed(1)} / ${Math.max(...late).toFixed(1)}`,
    `${acked.ackP50Ms.toFixed(1)} / ${acked.ackP99Ms.toFixed(1)}`,
    busy,
  ]
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
