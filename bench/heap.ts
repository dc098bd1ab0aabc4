/** Heap an open group of the real service, by its own collector before and after many groups were opened. */
import { once } from 'node:events'
import { join } from 'node:path'
import { eventually } from '../test/support/eventually.ts'
import { spread, table } from './figures.ts'
import { type Generator, startGenerator } from './load/programs.ts'
import { gaugeOf } from './metrics.ts'
import { tableOfGoals } from './peers/goals.ts'
import { type Penstock, startPenstock } from './systems.ts'

const REPORT = join(import.meta.dirname, 'heap', 'report.ts')
const FOREVER_MS = 3_600_000
/** Code that has run before no longer grows the heap. */
const WARM_GROUPS = 2_000
const OPENED_MS = 20_000
/** Above its payload, B. */
const GOAL = 1_024

const HEAD = ['items come in', 'groups', 'heap B a group', 'buffers beyond the payload budget B', 'RSS B']

interface Lab {
  penstock: Penstock
  generator: Generator
  opened: number
}

interface Reading {
  heapUsed: number
  arrayBuffers: number
  rss: number
  residentBytes: number
}

interface Case {
  name: string
  explicit: boolean
  /** Few of them make small packs, and each pack costs something too. */
  connections: number
  groups: number
}

/** What a group took, bytes. */
interface Share {
  heap: number
  buffers: number
  rss: number
}

/**
 * Markdown: a row for each way in which groups can be opened, and its goal. `groups`: how many, where packs are large; a new
 * service in each of `rounds`.
 */
export async function measureHeap(groups: number, rounds: number): Promise<string> {
  const ways: Case[] = [
    { name: 'large packs, ids by the sender', explicit: true, connections: 64, groups },
    { name: 'large packs, no ids', explicit: false, connections: 64, groups },
    { name: 'one or two items a pack, ids', explicit: true, connections: 3, groups: groups / 8 },
  ]
  const shares: Share[][] = ways.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [n, share] of (await measureOnce(ways)).entries()) shares[n]!.push(share)
  }
  const rows = ways.map(({ name, groups }, n) => {
    const each = (member: (share: Share) => number) => spread(shares[n]!.map(member), 0)
    const cells = [each(({ heap }) => heap), each(({ buffers }) => buffers), each(({ rss }) => rss)]
    return [name, groups.toLocaleString('en'), ...cells]
  })
  const goals = ways.map(({ name }, n) => ({
    figure: `heap of a group beyond its payload, B, ${name}`,
    bound: ['≤', GOAL] as ['≤', number],
    values: shares[n]!.map(({ heap }) => heap),
  }))
  return `${table(HEAD, rows)}\n\n${tableOfGoals(goals)}`
}

async function measureOnce(ways: readonly Case[]): Promise<Share[]> {
  const generator = startGenerator()
  const penstock = await startPenstock({ sync: '2m', nodeOptions: ['--expose-gc', '--import', REPORT] })
  const forever = { idleTimeoutMs: FOREVER_MS, maxWaitFromFirstMs: FOREVER_MS, maxItems: 10_000 }
  await penstock.createBuffer({ bufferId: 'items', batch: forever, deliverTo: 'http://127.0.0.1:9/' })
  const lab = { penstock, generator, opened: 0 }
  const shares: Share[] = []
  for (const way of ways) {
    const before = await open(lab, { ...way, groups: WARM_GROUPS })
    shares.push(perGroup(before, await open(lab, way), way.groups))
  }
  await Promise.all([penstock.stop(), generator.stop()])
  return shares
}

async function open(lab: Lab, { groups, explicit, connections }: Case): Promise<Reading> {
  const { penstock, generator, opened } = lab
  const from = { url: penstock.ingestUrl, headers: penstock.headers, firstId: opened, firstKey: opened }
  const { failed } = await generator.ask({
    kind: 'fill',
    ...from,
    connections,
    explicit,
    size: 1_024,
    items: groups,
  })
  if (failed > 0) throw new Error(`${failed} of ${groups} items were not accepted`)
  lab.opened += groups
  await eventually(async () => (await gaugeOf(penstock.opsUrl, 'penstock_open_groups')) === lab.opened, {
    timeoutMs: OPENED_MS,
    everyMs: 100,
  })
  return read(penstock)
}

function perGroup(before: Reading, after: Reading, groups: number): Share {
  const each = (member: (reading: Reading) => number) => (member(after) - member(before)) / groups
  return {
    heap: each(({ heapUsed }) => heapUsed),
    buffers: each(({ arrayBuffers, residentBytes }) => arrayBuffers - residentBytes),
    rss: each(({ rss }) => rss),
  }
}

async function read(penstock: Penstock): Promise<Reading> {
  penstock.child.send('heap')
  const [usage] = (await once(penstock.child, 'message')) as [NodeJS.MemoryUsage]
  return { ...usage, residentBytes: await gaugeOf(penstock.opsUrl, 'penstock_resident_bytes') }
}
