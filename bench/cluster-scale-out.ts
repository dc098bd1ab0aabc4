/**
 * What more processes bring: the same load on installations of one, two and three actors, and through one and two
 * ingresses. All of them run all the time and are loaded in turns.
 */
import type { ClusterNode } from '../test/support/cluster.ts'
import { cpuMsOf, type Installation, install, KINDS, targetOf } from './cluster/installation.ts'
import { median, spread, table } from './figures.ts'
import { LOAD, untilDelivered } from './ingest.ts'
import { monotonicMs } from './load/program.ts'
import { type Generator, type Sink, startGenerator, startSink } from './load/programs.ts'
import { cpuOf, machineBusyMs, sumOf } from './processes.ts'

/** A multiple of all numbers of actors. */
const SHARDS = 6
/** Each is loaded through one of its ingresses, then through two. */
const INSTALLATIONS = [
  { actors: 1, ingresses: 2 },
  { actors: 2, ingresses: 1 },
  { actors: 3, ingresses: 1 },
]
const GENERATORS = 2
/** Deliveries keep pace with what is accepted only after the first batches were due. */
const WARM_MS = 2_000
const WINDOW = { idleTimeoutMs: 250, maxWaitFromFirstMs: 500, maxItems: 50 }
/** More ids than a generator needs in a round. */
const IDS = 1_000_000

interface Arrangement {
  readonly installation: Installation
  /** Those that are loaded. */
  readonly ingresses: readonly ClusterNode[]
}

/** Of the installation, in the order of `KINDS`; and of generators and sink. */
interface Cpu {
  own: number[]
  load: number
}

interface Round {
  acceptedPerSecond: number
  deliveredPerSecond: number
  /** Of the generator that waited longer. */
  ackP50Ms: number
  ackP99Ms: number
  failed: number
  /** CPU an item until everything was delivered, µs. */
  cpuUs: Cpu
  /** Share of the machine's CPU time that neither the installation nor its load used. */
  foreign: number
}

interface Load {
  readonly generators: readonly Generator[]
  readonly sink: Sink
  readonly measureMs: number
  /** Ids of this round begin here. */
  readonly firstId: number
}

/** Markdown. */
export async function measureScaleOut(rounds: number, measureMs: number): Promise<string> {
  const { sink, url } = await startSink()
  const generators = Array.from({ length: GENERATORS }, startGenerator)
  const installations: Installation[] = []
  for (const size of INSTALLATIONS)
    installations.push(await install({ ...size, shards: SHARDS }, WINDOW, url))
  const measured = new Map(
    installations.flatMap(arrangementsOf).map((each): [Arrangement, Round[]] => [each, []]),
  )
  let firstId = 0
  for (let round = 0; round < rounds; round++) {
    for (const [arrangement, done] of measured) {
      done.push(await measure(arrangement, { generators, sink, measureMs, firstId }))
      firstId += IDS * generators.length
    }
  }
  await Promise.all(installations.map(({ cluster }) => cluster.stop()))
  await Promise.all([...generators, sink].map((program) => program.stop()))
  return report(measured)
}

function arrangementsOf(installation: Installation): Arrangement[] {
  const { ingresses } = installation
  return ingresses.map((_, index) => ({ installation, ingresses: ingresses.slice(0, index + 1) }))
}

async function measure(arrangement: Arrangement, load: Load): Promise<Round> {
  const { sink, measureMs } = load
  await sink.ask({ kind: 'reset' })
  const [cpuBefore, machineBefore] = [await cpuMs(arrangement, load), machineBusyMs()]
  const startAt = monotonicMs() + WARM_MS
  const sent = await Promise.all(send(arrangement, load, startAt))
  const accepted = sum(sent.map((each) => each.accepted))
  await untilDelivered(sink, accepted)
  const [cpuAfter, machineMs] = [await cpuMs(arrangement, load), machineBusyMs() - machineBefore]
  const arrivals = await sink.ask({ kind: 'arrivals' })
  const delivered = arrivals.filter(([, at]) => at >= startAt && at < startAt + measureMs).length
  const ownMs = cpuAfter.own.map((ms, kind) => ms - cpuBefore.own[kind]!)
  const loadMs = cpuAfter.load - cpuBefore.load
  return {
    acceptedPerSecond: (sum(sent.map(({ counts }) => counts[0]!)) / measureMs) * 1_000,
    deliveredPerSecond: (delivered / measureMs) * 1_000,
    ackP50Ms: Math.max(...sent.map(({ ackP50Ms }) => ackP50Ms[0])),
    ackP99Ms: Math.max(...sent.map(({ ackP99Ms }) => ackP99Ms[0])),
    failed: sum(sent.map((each) => each.failed)),
    cpuUs: { own: ownMs.map((ms) => (ms * 1_000) / accepted), load: (loadMs * 1_000) / accepted },
    foreign: Math.max(0, (machineMs - sum(ownMs) - loadMs) / machineMs),
  }
}

/** Always as many generators and connections, spread over the ingresses. */
function send({ installation, ingresses }: Arrangement, load: Load, startAt: number) {
  const { generators, measureMs, firstId } = load
  const { keys, size } = LOAD
  const connections = LOAD.connections / generators.length
  return generators.map((generator, n) => {
    const target = targetOf(installation, ingresses[n % ingresses.length]!)
    return generator.ask({
      kind: 'sliced',
      ...target,
      connections,
      keys,
      size,
      explicit: true,
      firstId: firstId + n * IDS,
      startAt,
      sliceMs: measureMs,
      slices: 1,
    })
  })
}

async function cpuMs({ installation, ingresses }: Arrangement, load: Load): Promise<Cpu> {
  return {
    own: await cpuMsOf(installation, ingresses),
    load: sum([...load.generators, load.sink].map(({ pid }) => sumOf(cpuOf(pid)))),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0)
}

function report(measured: ReadonlyMap<Arrangement, readonly Round[]>): string {
  const [base] = measured.values()
  const rows = [...measured].map(([arrangement, rounds]) => rowOf(arrangement, rounds, base!))
  const head = [
    ...['ingresses', 'actors', 'accepted/s', '÷ first row', 'delivered/s', '÷ first row', 'ack p50 / p99 ms'],
    ...['CPU µs an item', KINDS.join(' + '), 'generators and sink', 'foreign CPU'],
  ]
  const failed = sum([...measured.values()].flat().map((round) => round.failed))
  return `${table(head, rows)}\n\n${failed} requests failed.`
}

function rowOf(
  { installation, ingresses }: Arrangement,
  rounds: readonly Round[],
  base: readonly Round[],
): string[] {
  const all = (of: (round: Round) => number) => rounds.map(of)
  const middle = (of: (round: Round) => number, digits: number) => median(all(of)).toFixed(digits)
  const ratios = (of: (round: Round) => number) => rounds.map((round, n) => of(round) / of(base[n]!))
  const speed = (of: (round: Round) => number) => [
    spread(all(of), 0),
    rounds === base ? '' : spread(ratios(of), 2),
  ]
  return [
    ...[String(ingresses.length), String(installation.actors.length)],
    ...speed(({ acceptedPerSecond }) => acceptedPerSecond),
    ...speed(({ deliveredPerSecond }) => deliveredPerSecond),
    `${middle(({ ackP50Ms }) => ackP50Ms, 1)} / ${middle(({ ackP99Ms }) => ackP99Ms, 1)}`,
    spread(
      all(({ cpuUs }) => sum(cpuUs.own)),
      0,
    ),
    KINDS.map((_, kind) => middle(({ cpuUs }) => cpuUs.own[kind]!, 0)).join(' + '),
    middle(({ cpuUs }) => cpuUs.load, 0),
    `${middle(({ foreign }) => 100 * foreign, 0)} %`,
  ]
}
