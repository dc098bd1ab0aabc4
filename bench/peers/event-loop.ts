/** How late the event loop of the service is while what could block it passes. */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DEFAULT_SOURCE_SIGNATURE_HEADER } from '../../internal/domain/signatures/schemes.ts'
import { spread, table } from '../figures.ts'
import { type Generator, type Sink, startGenerator, startSink } from '../load/programs.ts'
import { type Penstock, SECRET, startPenstock } from '../systems.ts'
import { WINDOW } from './cells.ts'
import { drained } from './compare.ts'
import { natsSync } from './contenders.ts'
import { DELAY_QUESTION, type Delay } from './delay-report.ts'
import type { Part } from './part.ts'

const REPORT = join(import.meta.dirname, 'delay-report.ts')
/** Below the service's limit of 1,000,000 bytes. */
const LARGE_BYTES = 999_000
const DEPTH = 64
const SEGMENT_ITEMS = 2_000
/** Items a second while a segment is filled: as one sender with something to catch up on has them. */
const SEGMENT_RATE = 5_000
const SEGMENT = {
  idleTimeoutMs: 600_000,
  maxWaitFromFirstMs: 600_000,
  maxItems: SEGMENT_ITEMS,
  maxBytes: 4_194_304,
}
/** Bodies of one kind follow each other at once, for so long, ms. */
const BODIES_MS = 2_000
const HEAD = ['meanwhile pass', 'event loop late, p50 ms', 'p99 ms', 'greatest ms']

interface Lab {
  penstock: Penstock
  generator: Generator
  sink: Sink
  nextId: number
}

/** Markdown, by rounds of each load alone and of all together. */
export async function measureEventLoop(rounds: number): Promise<Part> {
  const { sink, url: deliverTo } = await startSink()
  const penstock = await startPenstock({ sync: natsSync('default'), nodeOptions: ['--import', REPORT] })
  await penstock.createBuffer({ bufferId: 'items', batch: WINDOW, deliverTo, secret: SECRET })
  await penstock.createBuffer({ bufferId: 'segments', batch: SEGMENT, deliverTo, secret: SECRET })
  const lab: Lab = { penstock, sink, generator: startGenerator(), nextId: 0 }
  const large = () => sendBodies(penstock, largeBody())
  const deep = () => sendBodies(penstock, deepBody(1))
  const largeAndDeep = () => sendBodies(penstock, deepBody(LARGE_BYTES))
  const segment = () => sendSegment(lab)
  const loads = new Map<string, () => Promise<unknown>>([
    ['nothing', () => delay(BODIES_MS)],
    ['bodies of 1 MB of small members', large],
    [`bodies ${DEPTH} levels deep`, deep],
    [`bodies of 1 MB, all of it ${DEPTH} levels deep`, largeAndDeep],
    [`a segment of ${SEGMENT_ITEMS.toLocaleString('en')} items of 1 KB`, segment],
    ['all of them', () => Promise.all([large(), deep(), segment()])],
  ])
  const delays = new Map<string, Delay[]>([...loads.keys()].map((name) => [name, []]))
  // Once without measuring: code that runs for the first time is slow.
  for (let round = -1; round < rounds; round++) {
    for (const [name, load] of loads) {
      await read(penstock)
      await load()
      const measured = await read(penstock)
      if (round >= 0) delays.get(name)!.push(measured)
    }
  }
  await Promise.all([penstock.stop(), lab.generator.stop(), sink.stop()])
  return partOf(delays)
}

async function read({ child }: Penstock): Promise<Delay> {
  child.send(DELAY_QUESTION)
  const [delays] = (await once(child, 'message')) as [Delay]
  return delays
}

/** One after the other. */
async function sendBodies({ ingestUrl, headers }: Penstock, body: string): Promise<void> {
  const signature = createHmac('sha256', SECRET).update(body).digest('hex')
  const end = performance.now() + BODIES_MS
  while (performance.now() < end) {
    const answer = await fetch(ingestUrl, {
      method: 'POST',
      headers: {
        ...headers,
        'Content-Type': 'application/json',
        [DEFAULT_SOURCE_SIGNATURE_HEADER]: signature,
      },
      body,
    })
    await answer.arrayBuffer()
    if (answer.status !== 202) throw new Error(`a body was answered ${answer.status}`)
  }
}

/** Resolves when its one batch has been delivered. */
async function sendSegment(lab: Lab): Promise<void> {
  const { penstock, generator, sink } = lab
  await sink.ask({ kind: 'reset' })
  await generator.ask({
    kind: 'recorded',
    url: penstock.urlOf('segments'),
    headers: penstock.headers,
    firstId: lab.nextId,
    connections: 64,
    size: 1_024,
    explicit: true,
    secret: SECRET,
    keys: { count: 1 },
    seed: 1,
    rate: SEGMENT_RATE,
    ms: (SEGMENT_ITEMS / SEGMENT_RATE) * 1_000,
  })
  lab.nextId += SEGMENT_ITEMS
  await drained(sink, SEGMENT_ITEMS)
  const { distinct } = await sink.ask({ kind: 'stats' })
  if (distinct !== SEGMENT_ITEMS) throw new Error(`of ${SEGMENT_ITEMS} items ${distinct} came`)
}

/** Many small values are more work than a few long ones. */
function largeBody(): string {
  const member = '{"id":12345,"name":"a name","price":12.5},'
  const room = LARGE_BYTES - 100
  return `{"key":"large","rows":[${member.repeat(Math.floor(room / member.length))}null]}`
}

/** Of about so many bytes. */
function deepBody(bytes: number): string {
  // The body itself and its list are the first two levels.
  const levels = DEPTH - 2
  const member = `${'['.repeat(levels)}${']'.repeat(levels)},`
  const members = Math.max(1, Math.floor((bytes - 100) / member.length))
  return `{"key":"deep","levels":[${member.repeat(members)}null]}`
}

function partOf(delays: Map<string, Delay[]>): Part {
  const rows = [...delays].map(([name, measured]) => [
    name,
    ...(['p50', 'p99', 'max'] as const).map((figure) =>
      spread(
        measured.map((one) => one[figure]),
        1,
      ),
    ),
  ])
  return {
    text: `**Event loop of the service** (ticks of 1 ms, quantiles by time; sync default)\n\n${table(HEAD, rows)}`,
    goals: [...delays]
      .filter(([name]) => name !== 'nothing')
      .map(([name, measured]) => ({
        figure: `event loop delay p99 ms: ${name}`,
        bound: ['≤', 50],
        values: measured.map(({ p99 }) => p99),
      })),
  }
}
