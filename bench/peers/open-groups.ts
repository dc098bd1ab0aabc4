/**
 * Cost an item with many open groups over that with few: two instances, loaded in turns. Half of the items go to the
 * groups that stay open, half are delivered in batches as everywhere else.
 */
import { median, spread, table } from '../figures.ts'
import { type Generator, type Sink, startGenerator, startSink } from '../load/programs.ts'
import { sumOf } from '../processes.ts'
import { type Penstock, SECRET, startPenstock } from '../systems.ts'
import { WINDOW } from './cells.ts'
import { drained } from './compare.ts'
import { natsSync } from './contenders.ts'
import type { Part } from './part.ts'

const HELD = {
  idleTimeoutMs: 3_600_000,
  maxWaitFromFirstMs: 3_600_000,
  maxItems: 2_000,
  maxBytes: 4 * 1_048_576,
}
const LOAD = { connections: 32, size: 1_024, explicit: true, secret: SECRET }
const KEYS = 1_000
/** Of a round: none of a hundred held groups is full after all of them. */
const MS = 3_000

interface Instance {
  penstock: Penstock
  groups: number
  /** Of each round. */
  cpuUs: number[]
  perSecond: number[]
  refused: number
  firstFailure?: string
}

interface Lab {
  toHeld: Generator
  toDelivered: Generator
  sink: Sink
  nextId: number
}

/** `counts`: open groups of the two, few first. */
export async function measureOpenGroups(
  counts: readonly [number, number],
  rounds: number,
  ms = MS,
): Promise<Part> {
  const { sink, url } = await startSink()
  const lab: Lab = { toHeld: startGenerator(), toDelivered: startGenerator(), sink, nextId: 0 }
  const instances = await Promise.all(counts.map((groups) => startWith(groups, url)))
  for (const instance of instances) await open(instance, lab)
  // Once without measuring: code that runs for the first time is slow.
  for (let round = -1; round < rounds; round++) {
    for (const instance of instances) await play(instance, lab, ms, round)
  }
  await Promise.all(instances.map(({ penstock }) => penstock.stop()))
  await Promise.all([lab.toHeld.stop(), lab.toDelivered.stop(), sink.stop()])
  return partOf(instances)
}

async function startWith(groups: number, deliverTo: string): Promise<Instance> {
  const penstock = await startPenstock({ sync: natsSync('default') })
  await penstock.createBuffer({ bufferId: 'held', batch: HELD, deliverTo, secret: SECRET })
  await penstock.createBuffer({ bufferId: 'items', batch: WINDOW, deliverTo, secret: SECRET })
  return { penstock, groups, cpuUs: [], perSecond: [], refused: 0 }
}

async function open({ penstock, groups }: Instance, lab: Lab): Promise<void> {
  const { failed } = await lab.toHeld.ask({
    kind: 'fill',
    ...LOAD,
    url: penstock.urlOf('held'),
    headers: penstock.headers,
    firstId: lab.nextId,
    firstKey: 0,
    items: groups,
  })
  if (failed > 0) throw new Error(`${failed} of ${groups} items were not accepted`)
  lab.nextId += groups
}

async function play(instance: Instance, lab: Lab, ms: number, round: number): Promise<void> {
  const { penstock } = instance
  await lab.sink.ask({ kind: 'reset' })
  const before = sumOf(penstock.cpu())
  const send = async (generator: Generator, bufferId: string, keys: number, firstId: number) => {
    const { ackedAt, firstFailure } = await generator.ask({
      kind: 'recorded',
      ...LOAD,
      url: penstock.urlOf(bufferId),
      headers: penstock.headers,
      firstId,
      keys: { count: keys },
      seed: round,
      ms,
    })
    const accepted = ackedAt.filter((at) => !Number.isNaN(at)).length
    instance.refused += ackedAt.length - accepted
    if (firstFailure !== undefined) instance.firstFailure ??= firstFailure
    return accepted
  }
  // Ids of the two must not meet: neither sends nearly as many.
  const [held, delivered] = await Promise.all([
    send(lab.toHeld, 'held', instance.groups, lab.nextId),
    send(lab.toDelivered, 'items', KEYS, lab.nextId + 1_000_000),
  ])
  lab.nextId += 2_000_000
  await drained(lab.sink, delivered)
  if (round < 0) return
  instance.cpuUs.push(((sumOf(penstock.cpu()) - before) * 1_000) / (held + delivered))
  instance.perSecond.push(((held + delivered) * 1_000) / ms)
}

function partOf(instances: readonly Instance[]): Part {
  const [few, many] = instances as [Instance, Instance]
  const rows = instances.map(({ groups, cpuUs, perSecond, refused, firstFailure = '' }) => [
    groups.toLocaleString('en'),
    spread(perSecond, 0),
    spread(cpuUs, 0),
    `${refused} ${firstFailure}`.trim(),
  ])
  const count = ({ groups }: Instance) => groups.toLocaleString('en')
  return {
    text: `**Cost an item by open groups** (sync default). Half of the items go to them.\n\n${table(
      ['open groups', 'accepted/s', 'CPU µs an item', 'refused'],
      rows,
    )}`,
    goals: [
      {
        figure: `CPU an item at ${count(many)} open groups ÷ at ${count(few)}`,
        bound: ['≤', 1.3],
        values: many.cpuUs.map((us, round) => us / few.cpuUs[round]!),
      },
      {
        figure: `the same, as accepted/s at ${count(few)} ÷ at ${count(many)} (medians)`,
        bound: ['≤', 1.3],
        values: [median(few.perSecond) / median(many.perSecond)],
      },
    ],
  }
}
