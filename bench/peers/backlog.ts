/** Batches a second that Penstock delivers when many are due at once, beside bare POSTs of such bodies from one process. */
import { setTimeout as delay } from 'node:timers/promises'
import { spread, table } from '../figures.ts'
import { Program } from '../load/program.ts'
import { type Generator, type Sink, startGenerator, startSink } from '../load/programs.ts'
import type { Batches } from '../load/sink.ts'
import { SECRET } from '../systems.ts'
import { CONNECTIONS, WINDOW } from './cells.ts'
import { CONTENDERS, type Contender } from './contenders.ts'
import type { Part } from './part.ts'
import type { Posted, Posting } from './post-floor.ts'
import type { Tools } from './tools.ts'

/** Of a batch, and bytes of each. */
const ITEMS = 10
const SIZE = 1_024
const FLOOR_MS = 2_000

/** `groups`: batches of a round. */
export async function measureBacklog(groups: number, rounds: number, tools: Tools): Promise<Part> {
  const generator = startGenerator()
  const { sink, url } = await startSink()
  const floor = new Program<Posting, { post: Posted }>('./post-floor.ts')
  const setting = { sync: 'default', window: WINDOW, sinkUrl: url, delivers: false } as const
  const penstock = await CONTENDERS.penstock.start(setting, tools)
  const [own, posts]: [number[], Posted[]] = [[], []]
  // Once without measuring: code that runs for the first time is slow.
  for (let round = -1; round < rounds; round++) {
    const perSecond = await deliver(penstock, generator, sink, groups, (round + 1) * groups * ITEMS)
    const load = { items: ITEMS, size: SIZE, connections: CONNECTIONS }
    const posted = await floor.ask({ kind: 'post', url, ...load, ms: FLOOR_MS })
    if (round < 0) continue
    own.push(perSecond)
    posts.push(posted)
  }
  await penstock.system.stop()
  await Promise.all([generator.stop(), sink.stop(), floor.stop()])
  return partOf(own, posts)
}

/** Fills the groups, lets all of them go, and tells batches a second. */
async function deliver(
  penstock: Contender,
  generator: Generator,
  sink: Sink,
  groups: number,
  firstId: number,
): Promise<number> {
  const { ingestUrl: url, headers } = penstock.system
  await sink.ask({ kind: 'reset' })
  for (let item = 0; item < ITEMS; item++) {
    const { failed } = await generator.ask({
      kind: 'fill',
      url,
      headers,
      secret: SECRET,
      size: SIZE,
      connections: CONNECTIONS,
      explicit: true,
      firstId: firstId + item * groups,
      firstKey: 0,
      items: groups,
    })
    if (failed > 0) throw new Error(`${failed} of ${groups} items were not accepted`)
  }
  // Then all are overdue by the windows that they get.
  await delay(WINDOW.maxWaitFromFirstMs)
  await penstock.clear!()
  return batchesPerSecond(await sink.ask({ kind: 'batches' }), groups)
}

function batchesPerSecond({ at, sizes }: Batches, groups: number): number {
  if (at.length !== groups || !sizes.every((size) => size === ITEMS)) {
    throw new Error(`${groups} batches of ${ITEMS} were due, ${at.length} came`)
  }
  const times = at.toSorted()
  return ((groups - 1) / (times.at(-1)! - times[0]!)) * 1_000
}

function partOf(own: number[], posts: readonly Posted[]): Part {
  const floor = posts.map(({ perSecond }) => perSecond)
  const ratios = own.map((perSecond, round) => perSecond / floor[round]!)
  const bytes = ((posts[0]?.bytes ?? 0) / 1_024).toFixed(1)
  const head = ['', 'batches/s', 'Penstock ÷ it']
  return {
    text: `**Deliveries of a backlog**, ${ITEMS} items of 1 KB a batch, ${bytes} KB a POST, one sink (sync default)\n\n${table(
      head,
      [
        ['penstock', spread(own, 0), ''],
        ['undici floor', spread(floor, 0), spread(ratios, 2)],
      ],
    )}`,
    goals: [{ figure: 'delivered batches/s ÷ undici floor', bound: ['≥', 0.7], values: ratios }],
  }
}
