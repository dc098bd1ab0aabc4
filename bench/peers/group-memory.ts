/** Memory an open group, of all processes: groups of one item are opened step by step on systems that run side by side. */
import { setTimeout as delay } from 'node:timers/promises'
import { spread, table } from '../figures.ts'
import { type Generator, startGenerator, startSink } from '../load/programs.ts'
import { memoryOf } from '../processes.ts'
import { SECRET } from '../systems.ts'
import { CONNECTIONS } from './cells.ts'
import { CONTENDERS, type Contender, type ContenderName } from './contenders.ts'
import type { Part } from './part.ts'
import type { Tools } from './tools.ts'

const NAMES: ContenderName[] = ['penstock', 'hand', 'asynq']
const HOUR_MS = 3_600_000
const WINDOW = { idleTimeoutMs: HOUR_MS, maxWaitFromFirstMs: HOUR_MS, maxItems: 50 }
const SIZE = 1_024
/** Memory is at rest when it changed by less than this share in `REST_MS`. */
const REST_SHARE = 0.01
const REST_MS = 1_000
const REST_LIMIT_MS = 15_000
/** What is meant is what waits, not what has just come: in a minute each system has tidied up. */
const WAIT_MS = 75_000
const HEAD = ['', 'durability', 'open groups', 'PSS MB', 'more a group, bytes: each step', 'over all steps']

/** `groups` are opened in each of `steps`, and as many before the first reading. */
export async function measureGroupMemory(groups: number, steps: number, tools: Tools): Promise<Part> {
  const generator = startGenerator()
  const { sink, url: sinkUrl } = await startSink()
  const systems = new Map<ContenderName, Contender>()
  const readings = new Map<ContenderName, number[]>()
  for (const name of NAMES) {
    if (tools.missing(CONTENDERS[name].needs).length > 0) continue
    const setting = { sync: 'default', window: WINDOW, sinkUrl, delivers: true } as const
    systems.set(name, await CONTENDERS[name].start(setting, tools))
    readings.set(name, [])
  }
  for (let step = 0; step <= steps; step++) {
    for (const { system } of systems.values()) await open(system, generator, step * groups, groups)
    await delay(WAIT_MS)
    for (const [name, { system }] of systems) readings.get(name)!.push(await memoryAtRest(system.roots))
  }
  await Promise.all([...systems.values()].map(({ system }) => system.stop()))
  await Promise.all([generator.stop(), sink.stop()])
  return partOf(readings, groups)
}

async function open(
  system: Contender['system'],
  generator: Generator,
  first: number,
  items: number,
): Promise<void> {
  const { failed } = await generator.ask({
    kind: 'fill',
    url: system.ingestUrl,
    headers: system.headers,
    secret: SECRET,
    size: SIZE,
    connections: CONNECTIONS,
    explicit: true,
    firstId: first,
    firstKey: first,
    items,
  })
  if (failed > 0) throw new Error(`${failed} of ${items} items were not accepted`)
}

/** Bytes. */
async function memoryAtRest(roots: readonly number[]): Promise<number> {
  const read = () => roots.reduce((sum, root) => sum + memoryOf(root), 0)
  const deadline = performance.now() + REST_LIMIT_MS
  for (let last = read(); ; ) {
    await delay(REST_MS)
    const now = read()
    if (Math.abs(now - last) < REST_SHARE * now || performance.now() > deadline) return now
    last = now
  }
}

function partOf(readings: Map<ContenderName, number[]>, groups: number): Part {
  const overAll = (bytes: readonly number[]) => (bytes.at(-1)! - bytes[0]!) / (groups * (bytes.length - 1))
  const rows = NAMES.map((name) => {
    const bytes = readings.get(name)
    if (!bytes) return [name, '**left out: see above**', '', '', '', '']
    const more = bytes.slice(1).map((now, step) => (now - bytes[step]!) / groups)
    return [
      ...[name, CONTENDERS[name].durability.default],
      (groups * bytes.length).toLocaleString('en'),
      (bytes.at(-1)! / 1e6).toFixed(0),
      ...[spread(more, 0), overAll(bytes).toFixed(0)],
    ]
  })
  const [own, asynq] = [readings.get('penstock'), readings.get('asynq')]
  return {
    text: `**Memory an open group.** Each has one item of 1 KB that waits for an hour. Memory is read 75 s after the last one came.\n\n${table(HEAD, rows)}`,
    goals: [goal(own && asynq ? [overAll(own) / overAll(asynq)] : [])],
  }
}

function goal(values: number[]): Part['goals'][number] {
  return { figure: 'memory an open group ÷ Asynq, over all steps', bound: ['≤', 1], values }
}
