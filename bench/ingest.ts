/**
 * Ingest of Penstock beside two packed floors and a hand-written service: all of them run all the time and are
 * loaded in turns, so that whatever else the machine does falls on all of them.
 */

import { eventually } from '../test/support/eventually.ts'
import { confidence, inTurn, median, spread, table } from './figures.ts'
import type { Sent } from './load/generator.ts'
import { type Generator, type Sink, startGenerator, startSink } from './load/programs.ts'
import { type Goal, tableOfGoals } from './peers/goals.ts'
import { cpuOf, machineBusyMs, sumOf } from './processes.ts'
import { type Penstock, SECRET, type System, startPenstock, startRival } from './systems.ts'

/** Size in bytes. */
export const LOAD = { connections: 64, keys: 1_000, size: 1_024 }
const WARM_MS = 1_000
const MEASURE_MS = 3_000
const ROUNDS = 5
/** Two versions of one program differ by a few hundredths. */
const TURNS = 100
const TURN_MS = 1_000
const TURN_WARM_MS = 200
/** Services that have run for a while are meant: their paths have to be compiled first. */
const FIRST_MS = 10_000
export const WINDOW = { idleTimeoutMs: 1_000, maxWaitFromFirstMs: 2_000, maxItems: 50 }
/** Nothing comes due in a round. */
const HOLDING = { idleTimeoutMs: 3_600_000, maxWaitFromFirstMs: 3_600_000, maxItems: 2_000 }
const DRAIN_MS = 60_000

interface Round {
  sent: Sent
  /** CPU an item of all processes of the system until everything was delivered, µs. */
  cpuUs: number
  cpuByKind: Map<string, number>
  /** Share of the machine's CPU time that neither system nor load used. */
  foreign: number
}

interface Contestant {
  readonly name: string
  readonly system: System
  readonly url: string
  /** Accepted items go to the sink, and a round ends when all have come. */
  readonly delivers: boolean
  /** Set: accepted items wait until the round is over, then this lets them go; its end holds again. */
  readonly releasing?: (untilDelivered: () => Promise<void>) => Promise<void>
}

type Rounds = Map<Contestant, Round[]>

const [SIGNED, UNSIGNED] = ['penstock', 'penstock, signatures off'] as const
/** Nothing is delivered meanwhile, as the floors deliver nothing. */
const [SIGNED_HELD, UNSIGNED_HELD] = [`${SIGNED}, nothing due`, `${UNSIGNED}, nothing due`] as const
/** The first takes bytes for what they are; the second parses them, as `KOA=1 PACK=1` of the comparison before this one does. */
const FLOORS = ['floor', 'floor, parsing'] as const
const HAND = 'hand'

/** Least accepted/s of Penstock with signatures ÷ the hand-written service's and, where that has a goal, ÷ the floors'. */
interface Least {
  readonly hand: number
  readonly floors?: number
}

/** Markdown of one comparison. */
export async function compareIngest(sync: string, least: Least): Promise<string> {
  const lab = await openLab()
  const system = await startPenstock({ sync })
  const contestants: Contestant[] = [
    await contestantOn(system, SIGNED, lab, 'signed', SECRET),
    await contestantOn(system, UNSIGNED, lab, 'unsigned'),
    await holdingOn(system, SIGNED_HELD, lab, 'signed-held', SECRET),
    await holdingOn(system, UNSIGNED_HELD, lab, 'unsigned-held'),
  ]
  for (const name of [...FLOORS, HAND] as const) {
    const system = await startRival(name, sync)
    contestants.push({ name, system, url: system.ingestUrl, delivers: false })
  }
  const rounds = await compare(contestants, lab, ROUNDS)
  const roundsOf = (name: string) => [...rounds].find(([each]) => each.name === name)![1]
  const against = (names: readonly string[], rivals: readonly string[], bound: number): Goal[] =>
    names.flatMap((name) =>
      rivals.map((rival) => ({
        figure: `${name} ÷ ${rival}`,
        bound: ['≥', bound] as const,
        values: roundsOf(name).map(
          ({ sent }, round) => sent.perSecond / roundsOf(rival)[round]!.sent.perSecond,
        ),
      })),
    )
  const signed = [SIGNED, SIGNED_HELD]
  const goals = [
    ...against([UNSIGNED, UNSIGNED_HELD], FLOORS, 0.6),
    ...(least.floors === undefined ? [] : against(signed, FLOORS, least.floors)),
    ...against(signed, [HAND], least.hand),
  ]
  return `${report(rounds)}\n\n${tableOfGoals(goals)}`
}

/** Markdown: `npm start` with two processes, one that takes requests and one that runs the shards, beside one that does both. */
export async function compareProcesses(sync: string, rounds: number): Promise<string> {
  const lab = await openLab()
  const contestants: Contestant[] = []
  for (const [count, name] of [
    [2, 'two processes'],
    [1, 'one process'],
  ] as const) {
    const system = await startPenstock({ sync, env: { PENSTOCK_PROCESSES: String(count) } })
    contestants.push(await contestantOn(system, name, lab, 'items', SECRET))
  }
  return report(await compare(contestants, lab, rounds))
}

/**
 * Markdown: this tree beside each that was checked out at `baselines`, all with signatures, by default and with every message
 * on disk. They are loaded in turns of a second, so that each pause of the machine is soon everybody's; what is delivered
 * of one then falls into the turns of all.
 */
export async function compareBaseline(baselines: readonly string[]): Promise<string> {
  const parts: string[] = []
  for (const sync of ['2m', 'always']) {
    const lab = await openLab()
    const contestants: Contestant[] = []
    for (const checkout of [undefined, ...baselines]) {
      const system = await startPenstock({ sync, ...(checkout !== undefined && { checkout }) })
      contestants.push(await contestantOn(system, checkout ?? 'this tree', lab, 'items', SECRET))
    }
    parts.push(`PENSTOCK_SYNC=${sync}\n\n${await compareTurns(contestants, lab)}`)
  }
  return parts.join('\n\n')
}

async function compareTurns(contestants: readonly Contestant[], { generator, sink }: Lab): Promise<string> {
  let firstId = 0
  const ask = async (contestant: Contestant, measureMs: number) => {
    const sent = await generator.ask({ ...loadOn(contestant, firstId), warmMs: TURN_WARM_MS, measureMs })
    if (sent.failed > 0) throw new Error(`${sent.failed} requests of ${contestant.name} failed`)
    firstId += sent.accepted
    return sent
  }
  for (const contestant of contestants) await ask(contestant, FIRST_MS)
  await untilDelivered(sink, firstId)
  const cpuBefore = contestants.map(({ system }) => sumOf(system.cpu()))
  const sums = contestants.map(() => ({ accepted: 0, perSecond: [] as number[] }))
  for (let round = 0; round < TURNS; round++) {
    for (const contestant of inTurn(contestants, round)) {
      const { accepted, perSecond } = await ask(contestant, TURN_MS)
      const sum = sums[contestants.indexOf(contestant)]!
      sum.accepted += accepted
      sum.perSecond.push(perSecond)
    }
  }
  await untilDelivered(sink, firstId)
  const cpuUs = contestants.map(
    ({ system }, n) => ((sumOf(system.cpu()) - cpuBefore[n]!) * 1_000) / sums[n]!.accepted,
  )
  await Promise.all(contestants.map(({ system }) => system.stop()))
  await Promise.all([generator.stop(), sink.stop()])
  const [own] = sums
  const rows = contestants.map(({ name }, n) => [
    name,
    median(sums[n]!.perSecond).toFixed(0),
    n === 0
      ? ''
      : confidence(
          sums[n]!.perSecond.map((each, turn) => own!.perSecond[turn]! / each),
          2,
        ),
    n === 0 ? '' : (own!.accepted / sums[n]!.accepted).toFixed(3),
    cpuUs[n]!.toFixed(0),
    n === 0 ? '' : (cpuUs[0]! / cpuUs[n]!).toFixed(3),
  ])
  const head = ['', 'accepted/s', 'this tree ÷ it, by turns', 'in all', 'CPU µs an item', 'this tree ÷ it']
  return table(head, rows)
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

/** A buffer of its own. `secret`: webhooks must be signed with it, and deliveries are. */
async function contestantOn(
  system: Penstock,
  name: string,
  { sinkUrl: deliverTo }: Lab,
  bufferId: string,
  secret?: string,
): Promise<Contestant> {
  await system.createBuffer({ bufferId, batch: WINDOW, deliverTo, ...(secret !== undefined && { secret }) })
  return { name, system, url: system.urlOf(bufferId), delivers: true }
}

/** The same, and nothing of it is delivered while items are accepted. */
async function holdingOn(
  system: Penstock,
  name: string,
  lab: Lab,
  bufferId: string,
  secret?: string,
): Promise<Contestant> {
  const contestant = await contestantOn(system, name, lab, bufferId, secret)
  await system.changeBuffer(bufferId, HOLDING)
  const releasing = async (untilDelivered: () => Promise<void>) => {
    await system.changeBuffer(bufferId, WINDOW)
    await untilDelivered()
    await system.changeBuffer(bufferId, HOLDING)
  }
  return { ...contestant, releasing }
}

async function compare(
  contestants: readonly Contestant[],
  { generator, sink }: Lab,
  count: number,
): Promise<Rounds> {
  const rounds: Rounds = new Map(contestants.map((contestant) => [contestant, []]))
  let firstId = 0
  for (const contestant of contestants) {
    await sink.ask({ kind: 'reset' })
    const load = loadOn(contestant, firstId)
    const { accepted, failed } = await generator.ask({ ...load, warmMs: 0, measureMs: FIRST_MS })
    firstId += accepted + failed
    await arrived(contestant, sink, accepted)
  }
  for (let round = 0; round < count; round++) {
    for (const contestant of inTurn(contestants, round)) {
      const measured = await measure(contestant, generator, sink, firstId)
      firstId += measured.sent.accepted + measured.sent.failed
      rounds.get(contestant)!.push(measured)
    }
  }
  await Promise.all([...new Set(contestants.map(({ system }) => system))].map((system) => system.stop()))
  await Promise.all([generator.stop(), sink.stop()])
  return rounds
}

/** Signed for all, so that the load costs the same; whoever does not check it does not. */
function loadOn({ url, system: { headers } }: Contestant, firstId: number) {
  return { kind: 'closed' as const, url, headers, firstId, explicit: true, secret: SECRET, ...LOAD }
}

async function measure(
  contestant: Contestant,
  generator: Generator,
  sink: Sink,
  firstId: number,
): Promise<Round> {
  const { system, releasing } = contestant
  await sink.ask({ kind: 'reset' })
  const before = { system: system.cpu(), load: loadCpu(generator, sink), machine: machineBusyMs() }
  const load = loadOn(contestant, firstId)
  const sent = await generator.ask({ ...load, warmMs: WARM_MS, measureMs: MEASURE_MS })
  if (!releasing) await arrived(contestant, sink, sent.accepted)
  const after = { system: system.cpu(), load: loadCpu(generator, sink), machine: machineBusyMs() }
  if (releasing) await arrived(contestant, sink, sent.accepted)
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

async function arrived({ delivers, releasing }: Contestant, sink: Sink, accepted: number): Promise<void> {
  const all = () => untilDelivered(sink, accepted)
  if (releasing) await releasing(all)
  else if (delivers) await all()
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

/** The others beside the first of them. */
function report(rounds: Rounds): string {
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
