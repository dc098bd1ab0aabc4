/** The tables of capacity.md. */
import { table } from '../figures.ts'
import type { Calibration } from './calibration.ts'
import { errorsOf, leastSquares, type Point, packMsOf, replicationOf } from './fit.ts'
import type { Fleet, FleetFigures } from './fleet.ts'
import { type Choice, type Constants, type Demand, type Plan, plan, ROLES } from './model.ts'

/** What capacity.md stands on: measured.json. */
export interface Measured {
  /** Day, machine. */
  where: string
  calibration: Calibration
  fleet: Fleet & { figures: FleetFigures }
}

export const DEMANDS: readonly Demand[] = [10_000, 100_000, 1_000_000].map((itemsPerSecond) => ({
  ...{ itemsPerSecond, itemBytes: 1_024, openGroups: 10 * itemsPerSecond },
  ...{ batchItems: 4, replicas: 3 },
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

export function constantsOf({ calibration }: Measured): Constants {
  const { costs, packMs } = leastSquares(calibration.fitted)
  return {
    costs,
    packMs: { 1: packMs, 3: packMsOf([calibration.three]) },
    replication: replicationOf(calibration.three, costs.NATS),
  }
}

/** Predicted ÷ measured of the points that the constants do not come from: CPU of an item in all, and items of a pack. */
export function foretold({ calibration }: Measured): { all: number; pack: number }[] {
  const fitted = leastSquares(calibration.fitted)
  return calibration.checked.map((point) => errorsOf(point, fitted))
}

export function constantsTable(measured: Measured): string {
  const { costs, packMs, replication } = constantsOf(measured)
  const rows = ROLES.map((role) => {
    const { item, pack, batch, second, shard } = costs[role]
    const cells = [item, pack, batch, second / 1_000, shard / 1_000]
    return [role, ...cells.map((cost) => (cost === 0 ? '' : cost.toFixed(cost < 10 ? 1 : 0)))]
  })
  const parts = ['an item, µs', 'a pack, µs', 'a batch, µs', 'a process a second, ms', 'a shard a second, ms']
  const first = table(['CPU of', ...parts], rows)
  return `${first}\n\nA pack takes items for ${packMs[1].toFixed(1)} ms, with three copies for ${packMs[3].toFixed(1)}. Three brokers with three copies take ${replication.toFixed(1)} times the CPU of one for the same packs, besides what each takes anyway.\n\n${measured.where}`
}

export function pointsTable(measured: Measured): string {
  const fitted = leastSquares(measured.calibration.fitted)
  const head = ['', 'shards', 'keys', 'items/s', 'a pack', '÷ measured', 'a batch']
  const roles = [...ROLES, 'all'].flatMap((role) => [`${role} µs`, '÷ measured'])
  const row = (kind: string) => (point: Point) => {
    const { shards, keys, cpuUs } = point
    const errors = errorsOf(point, fitted)
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
  const { calibration } = measured
  const rows = [...calibration.fitted.map(row('fitted')), ...calibration.checked.map(row('**foretold**'))]
  return table([...head, ...roles], rows)
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
    CHOICES.filter(({ cells }) => cells === 1 || demand.itemsPerSecond >= 100_000).map((choice) =>
      planRow(demand, choice, plan(demand, choice, constants)),
    ),
  )
  return table(head, rows)
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
