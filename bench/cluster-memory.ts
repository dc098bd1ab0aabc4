/** Memory of an actor's process as groups are opened on it, one item each. */
import type { ClusterNode } from '../test/support/cluster.ts'
import { eventually } from '../test/support/eventually.ts'
import { readMetrics } from '../test/support/metrics.ts'
import { MEMORY_EVENT, REPORT_OPTIONS, REPORT_SIGNAL } from './cluster/memory-report.ts'
import { startOneShard } from './cluster/one-shard.ts'
import { table } from './figures.ts'
import { untilBuffered } from './million/shard.ts'

const HEAD = ['open groups', 'RSS MB', 'heap MB', 'payloads MB', 'more a step: RSS MB', 'heap MB']
/** Code that has run before no longer grows the heap. */
const WARM_GROUPS = 2_000

export interface MemoryReading {
  groups: number
  rss: number
  heapUsed: number
  /** Bytes of packs in memory. */
  payloads: number
}

/** Markdown. */
export async function measureMemory(groups: number, steps: number): Promise<string> {
  return table(HEAD, (await openInSteps(groups, steps)).map(rowOf))
}

/** `groups` are opened on one node in each of `steps`, after a few for warmth. */
export async function openInSteps(groups: number, steps: number): Promise<MemoryReading[]> {
  const shard = await startOneShard()
  const actor = await shard.startActor({ NODE_OPTIONS: REPORT_OPTIONS })
  const readings: MemoryReading[] = []
  for (let step = 0, opened = 0; step <= steps; step++) {
    const more = step === 0 ? WARM_GROUPS : groups
    await shard.hold(more)
    opened += more
    await untilBuffered(actor, (items) => items === opened)
    readings.push(await read(actor))
  }
  await shard.close()
  return readings
}

async function read({ service, opsUrl }: ClusterNode): Promise<MemoryReading> {
  const reports = () => service.events.filter(({ msg }) => msg === MEMORY_EVENT)
  const before = reports().length
  service.child.kill(REPORT_SIGNAL)
  const report = await eventually(() => reports()[before] ?? false)
  const text = await (await fetch(`${opsUrl}/metrics`)).text()
  return {
    groups: readMetrics(text, 'penstock_open_groups'),
    rss: Number(report.rss),
    heapUsed: Number(report.heapUsed),
    payloads: readMetrics(text, 'penstock_resident_bytes'),
  }
}

function rowOf(reading: MemoryReading, step: number, readings: readonly MemoryReading[]): string[] {
  const { groups, rss, heapUsed, payloads } = reading
  const last = readings[step - 1]
  return [
    ...[groups.toLocaleString('en'), mb(rss), mb(heapUsed), mb(payloads)],
    ...(last ? [mb(rss - last.rss), mb(heapUsed - last.heapUsed)] : ['', '']),
  ]
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(0)
}
