/** Heap an open group of the real service, by its own collector before and after many groups were opened. */
import { once } from 'node:events'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { table } from './figures.ts'
import { startGenerator } from './load/programs.ts'
import { type Penstock, startPenstock } from './systems.ts'

const REPORT = join(import.meta.dirname, 'heap', 'report.ts')
const FOREVER_MS = 3_600_000
/** Code that has run before no longer grows the heap. */
const WARM_ITEMS = 5_000
const OPENED_MS = 20_000

interface Reading {
  heapUsed: number
  arrayBuffers: number
  rss: number
  residentBytes: number
}

/** Markdown: two rows, groups with an item whose id the sender gave, and without. */
export async function measureHeap(groups: number): Promise<string> {
  const generator = startGenerator()
  const penstock = await startPenstock({ sync: '2m', nodeOptions: ['--expose-gc', '--import', REPORT] })
  const forever = { idleTimeoutMs: FOREVER_MS, maxWaitFromFirstMs: FOREVER_MS, maxItems: 10_000 }
  await penstock.createBuffer({ bufferId: 'items', batch: forever, deliverTo: 'http://127.0.0.1:9/' })
  let opened = 0
  const open = async (items: number, explicit: boolean): Promise<Reading> => {
    const from = { url: penstock.ingestUrl, headers: penstock.headers, firstId: opened, firstKey: opened }
    await generator.ask({ kind: 'fill', ...from, connections: 64, size: 1_024, explicit, items })
    opened += items
    await eventually(async () => (await gauge(penstock, 'penstock_open_groups')) === opened, {
      timeoutMs: OPENED_MS,
      everyMs: 100,
    })
    return read(penstock)
  }
  const rows: string[][] = []
  for (const explicit of [true, false]) {
    const before = await open(WARM_ITEMS, explicit)
    const after = await open(groups, explicit)
    rows.push([explicit ? 'message id by the sender' : 'none', ...perGroup(before, after, groups)])
  }
  await Promise.all([penstock.stop(), generator.stop()])
  return table(['id', 'groups', 'heap B a group', 'buffers beyond the payload budget B', 'RSS B'], rows)
}

function perGroup(before: Reading, after: Reading, groups: number): string[] {
  const each = (member: (reading: Reading) => number) =>
    ((member(after) - member(before)) / groups).toFixed(0)
  return [
    groups.toLocaleString('en'),
    each(({ heapUsed }) => heapUsed),
    each(({ arrayBuffers, residentBytes }) => arrayBuffers - residentBytes),
    each(({ rss }) => rss),
  ]
}

async function read(penstock: Penstock): Promise<Reading> {
  penstock.child.send('heap')
  const [usage] = (await once(penstock.child, 'message')) as [NodeJS.MemoryUsage]
  return { ...usage, residentBytes: await gauge(penstock, 'penstock_resident_bytes') }
}

/** Sum over all shards. */
async function gauge({ opsUrl }: Penstock, name: string): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text()
  const values = text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'gm'))
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0)
}
