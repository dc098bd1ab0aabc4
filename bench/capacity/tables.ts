/** The tables of docs/operations/capacity.md. */
import type { MemoryReading } from '../cluster-memory.ts'
import { table } from '../figures.ts'
import type { Calibration } from './calibration.ts'
import {
  type Brokers,
  errorsOf,
  type Fitted,
  leastSquares,
  memoryError,
  memoryOf,
  type Point,
  packMsOf,
  replicatedOf,
} from './fit.ts'
import type { Fleet, FleetFigures } from './fleet.ts'
import { type Choice, type Constants, type Demand, type Plan, plan, ROLES } from './model.ts'
import { bytesBetweenZones, CORE_HOUR, GB_BETWEEN_ZONES, itemsAMonth, monthOfCores } from './price.ts'

/** What docs/operations/capacity.md stands on: measured.json. */
export interface Measured {
  /** Day, machine. */
  where: string
  calibration: Calibration
  /** Of an actor as groups are opened on it: the first two are for constants, the others to be predicted. */
  memory: MemoryReading[]
  fleet: Fleet & { figures: FleetFigures }
}

export const DEMANDS: readonly Demand[] = [10_000, 100_000, 1_000_000].map((itemsPerSecond) => ({
  itemsPerSecond,
  itemBytes: 1_024,
  openGroups: 10 * itemsPerSecond,
  batchItems: 4,
  replicas: 3,
}))
const CHOICE: Choice = { cells: 1, shardsAnActor: 1, gatherMs: 0, fsyncMs: 0 }
export const CHOICES: readonly Choice[] = [
  CHOICE,
  { ...CHOICE, shardsAnActor: 4 },
  { ...CHOICE, gatherMs: 20 },
  { ...CHOICE, fsyncMs: 1 },
  { ...CHOICE, cells: 10 },
  { ...CHOICE, cells: 10, gatherMs: 20 },
  { ...CHOICE, cells: 10, fsyncMs: 1 },
]

export function constantsOf({ calibration, memory }: Measured): Constants {
  const { costs, packMs } = leastSquares(calibration.fitted)
  return {
    costs,
    packMs: { 1: packMs, 3: packMsOf(calibration.three) },
    three: replicatedOf(calibration.three, costs.NATS),
    memory: memoryOf(memory),
  }
}

/** Points of one kind, and the brokers that they were measured with; none: one that syncs nothing. */
interface Group {
  name: string
  points: readonly Point[]
  brokers?: Brokers
}

/** Those that the constants do not come from. */
function checkedOf(measured: Measured, { packMs, costs }: Fitted): Group[] {
  const { checked, threeChecked, synced } = measured.calibration
  const constants = constantsOf(measured)
  const three = { packMs: constants.packMs[3], ...constants.three, count: 3 }
  const syncing = { packMs: packMs + synced.syncMs, times: 1, second: costs.NATS.second, count: 1 }
  return [
    { name: '**predicted**', points: checked },
    { name: '**predicted**, three brokers', points: threeChecked, brokers: three },
    { name: '**predicted**, sync always', points: synced.checked, brokers: syncing },
  ]
}

/** Predicted ÷ measured of those points: CPU of an item in all, and items of a pack. */
export function predicted(measured: Measured): { all: number; pack: number }[] {
  const fitted = leastSquares(measured.calibration.fitted)
  return checkedOf(measured, fitted).flatMap(({ points, brokers }) =>
    points.map((point) => errorsOf(point, fitted, brokers)),
  )
}

/** Predicted ÷ measured memory of an actor, where the constants do not come from. */
export function predictedMemory({ memory }: Measured): number[] {
  return memory.slice(2).map((reading) => memoryError(reading, memory))
}

export function constantsTable(measured: Measured): string {
  const { costs, packMs, three, memory } = constantsOf(measured)
  const rows = ROLES.map((role) => {
    const { item, pack, batch, second, shard } = costs[role]
    const cells = [item, pack, batch, second / 1_000, shard / 1_000]
    return [role, ...cells.map((cost) => (cost === 0 ? '' : cost.toFixed(cost < 10 ? 1 : 0)))]
  })
  const parts = ['an item, µs', 'a pack, µs', 'a batch, µs', 'a process a second, ms', 'a shard a second, ms']
  const first = table(['CPU of', ...parts], rows)
  return `${first}\n\nA pack takes items for ${packMs[1].toFixed(1)} ms, with three copies for ${packMs[3].toFixed(1)}. Three brokers with three copies take ${three.times.toFixed(1)} times the CPU of one for the same packs, and each ${(three.second / 1_000).toFixed(0)} ms a second anyway. A sync took ${measured.calibration.synced.syncMs.toFixed(2)} ms. An actor takes ${(memory.process / 1e6).toFixed(0)} MB, and ${memory.group.toFixed(0)} B for each group of one item beyond its payload.\n\n${measured.where}`
}

export function pointsTable(measured: Measured): string {
  const fitted = leastSquares(measured.calibration.fitted)
  const head = ['', 'shards', 'keys', 'items/s', 'a pack', '÷ measured', 'a batch']
  const roles = [...ROLES, 'all'].flatMap((role) => [`${role} µs`, '÷ measured'])
  const row = (kind: string, brokers?: Brokers) => (point: Point) => {
    const { shards, keys, cpuUs } = point
    const errors = errorsOf(point, fitted, brokers)
    const all = ROLES.reduce((sum, role) => sum + cpuUs[role], 0)
    return [
      ...[kind, ...[shards, keys].map((count) => count.toLocaleString('en'))],
      ...[point.itemsPerSecond.toFixed(0), point.packItems.toFixed(1)],
      ...[errors.pack.toFixed(2), point.batchItems.toFixed(1)],
      ...[...ROLES.map((role) => cpuUs[role]), all].flatMap((us, n) => [
        us.toFixed(0),
        errors[[...ROLES, 'all' as const][n]!].toFixed(2),
      ]),
    ]
  }
  const checked = checkedOf(measured, fitted)
  const constants = constantsOf(measured)
  const three = { packMs: constants.packMs[3], ...constants.three, count: 3 }
  const rows = [
    ...measured.calibration.fitted.map(row('fitted')),
    ...measured.calibration.three.map(row('fitted, three brokers', three)),
    ...checked.flatMap(({ name, points, brokers }) => points.map(row(name, brokers))),
  ]
  return table([...head, ...roles], rows)
}

export function memoryTable(measured: Measured): string {
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(0)
  const rows = measured.memory.map((reading, n) => [
    n < 2 ? 'fitted' : '**predicted**',
    reading.groups.toLocaleString('en'),
    ...[reading.rss, reading.heapUsed, reading.payloads].map(megabytes),
    memoryError(reading, measured.memory).toFixed(2),
  ])
  return table(['', 'open groups', 'RSS MB', 'heap MB', 'payloads MB', 'RSS ÷ measured'], rows)
}

export function plansTable(measured: Measured): string {
  const constants = constantsOf(measured)
  const head = [
    ...[
      'items/s',
      'open groups',
      'cells',
      'shards an actor',
      'more spacing ms',
      'sync ms',
      'ingresses',
      'actors',
      'brokers',
    ],
    ...[
      'items a pack',
      'open ms',
      'packs/s',
      'packs/s a shard',
      'cores: ingresses + actors + NATS + Postgres',
      'cores in all',
    ],
    ...[
      'GB of all actors',
      'groups an actor',
      'GB an actor',
      'MB/s into a broker',
      'lease messages/s a cell',
    ],
  ]
  const rows = DEMANDS.flatMap((demand) =>
    choicesFor(demand).map((choice) => planRow(demand, choice, plan(demand, choice, constants))),
  )
  return table(head, rows)
}

/** Little is not divided into cells. */
function choicesFor({ itemsPerSecond }: Demand): Choice[] {
  return CHOICES.filter(({ cells }) => cells === 1 || itemsPerSecond >= 100_000)
}

function planRow(demand: Demand, { cells, shardsAnActor, gatherMs, fsyncMs }: Choice, made: Plan): string[] {
  const whole = (value: number) => Math.round(value).toLocaleString('en')
  const of = (count: number) => (cells === 1 ? whole(count) : `${cells} × ${whole(count)}`)
  const cores = ROLES.map((role) => made.cores[role])
  return [
    ...[whole(demand.itemsPerSecond), whole(demand.openGroups), whole(cells)],
    ...[whole(shardsAnActor), whole(gatherMs), fsyncMs === 0 ? '' : whole(fsyncMs)],
    ...[of(made.ingresses), of(made.actors), of(made.brokers)],
    ...[made.packItems.toFixed(1), made.openMs.toFixed(0), whole(cells * made.packsPerSecond)],
    whole(made.packsPerSecond / made.shards),
    ...[cores.map(whole).join(' + '), whole(cores.reduce((sum, each) => sum + each, 0))],
    whole((cells * made.actors * made.actorBytes) / 1e9),
    ...[whole(made.groupsAnActor), (made.actorBytes / 1e9).toFixed(1)],
    ...[whole(made.brokerBytesPerSecond / 1e6), whole(made.leaseMessagesPerSecond)],
  ]
}

export function fleetTable({ fleet }: Measured): string {
  const { figures, shards, nodes, keys, warmMs, measureMs } = fleet
  const whole = (value: number) => Math.round(value).toLocaleString('en')
  const rows: [string, string][] = [
    ['shards on actors', `${whole(shards)} on ${whole(nodes)}`],
    ['keys', whole(keys)],
    [
      'seconds of virtual time, of them before anything counts',
      `${(warmMs + measureMs) / 1_000}, ${warmMs / 1_000}`,
    ],
    ['items/s', whole(figures.itemsPerSecond)],
    ['open groups', whole(figures.openGroups)],
    ['batches/s, items a batch', `${whole(figures.batchesPerSecond)}, ${figures.batchItems.toFixed(1)}`],
    ['open groups of a shard, mean and most', spread(figures.groupsOfShard)],
    ['open groups of an actor, mean and most', spread(figures.groupsOfNode)],
    ['items/s of an actor, mean and most', spread(figures.itemsOfNode)],
    ['timers armed and fired an item', `${figures.armed.toFixed(2)}, ${figures.wakes.toFixed(2)}`],
    ['seals of one shard within one ms, the most', whole(figures.mostAtOnce)],
    ['seal after its due time, the latest, virtual ms (no timer is missed)', figures.lateMs.toFixed(1)],
    ['real CPU of an item: its group, its timers, and all of the simulation, µs', figures.realUs.toFixed(1)],
    ['planning of all shards anew after a change of actors, ms', figures.planMs.toFixed(0)],
  ]
  return table(['', ''], rows)
}

function spread({ mean, most }: { mean: number; most: number }): string {
  return `${Math.round(mean).toLocaleString('en')}, ${Math.round(most).toLocaleString('en')} (${(most / mean).toFixed(2)})`
}

export function pricesTable(measured: Measured): string {
  const constants = constantsOf(measured)
  const head = [
    'items/s',
    'cores',
    'USD a month',
    'USD a million items',
    'TB between zones a month',
    'USD a month',
  ]
  const rows = DEMANDS.map((demand) => {
    const cores = choicesFor(demand)
      .map((choice) => plan(demand, choice, constants))
      .map((made) => ROLES.reduce((sum, role) => sum + made.cores[role], 0))
    const between = (of: (count: number) => string) =>
      [Math.min(...cores), Math.max(...cores)].map(of).join('–')
    const bytes = bytesBetweenZones(demand)
    const whole = (value: number) => Math.round(value).toLocaleString('en')
    return [
      ...[whole(demand.itemsPerSecond), between(whole)],
      between((count) => whole(monthOfCores(count))),
      between((count) => ((monthOfCores(count) / itemsAMonth(demand)) * 1e6).toFixed(4)),
      ...[whole(bytes / 1e12), whole((bytes / 1e9) * GB_BETWEEN_ZONES)],
    ]
  })
  return `${table(head, rows)}\n\nUSD ${CORE_HOUR} for an hour of a core, ${GB_BETWEEN_ZONES} for a GB from zone to zone.`
}
