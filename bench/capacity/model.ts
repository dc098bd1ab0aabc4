/**
 * What an installation takes: CPU of its processes from what they do an item, a pack and a batch, and from that how many of
 * each are needed. A pack is one append of one ingress to one shard, so packs shrink as ingresses and shards grow in
 * number, and everything that is paid a pack is paid more often.
 */
import { PAYLOAD_BUDGET } from '../../cmd/wiring/actor.ts'
import { DEFAULT_MAX_IN_FLIGHT, GATHER_MS as spacingMs } from '../../internal/ingest/packer.ts'

/** CPU, µs; what a role does not do is 0. */
export interface Costs {
  readonly item: number
  readonly pack: number
  readonly batch: number
  /** Of a process in a second, whatever comes: heartbeats, timers, and wake-ups that a busier one shares among its work. */
  readonly second: number
  /** Of each shard in a second. */
  readonly shard: number
}

export const ROLES = ['ingresses', 'actors', 'NATS', 'Postgres'] as const
export type Role = (typeof ROLES)[number]

export interface Constants {
  readonly costs: Readonly<Record<Role, Costs>>
  /** How long a pack takes items: gathering, and the append before it, ms; by the copies of each message. */
  readonly packMs: Readonly<Record<Replicas, number>>
  readonly three: Replicated
  readonly memory: Memory
}

/** Three brokers with three copies beside a single one. */
export interface Replicated {
  /** CPU of all three ÷ that of one for the same packs, but for what each takes anyway. */
  readonly times: number
  /** What each takes anyway in a second, µs. */
  readonly second: number
}

/** Of an actor: RSS without payloads, bytes. */
export interface Memory {
  readonly process: number
  /** Of an open group of one item. */
  readonly group: number
}

/** Copies of each message at the brokers. */
export type Replicas = 1 | 3

export interface Flow {
  readonly packItems: number
  readonly batchItems: number
}

/** CPU of an item at a role, but for what its processes take anyway, µs. */
export function cpuUs(costs: Costs, { packItems, batchItems }: Flow): number {
  return costs.item + costs.pack / packItems + costs.batch / batchItems
}

/**
 * Items of a pack: those of its ingress for its shard that come while it is open, or the next one alone where none comes. As
 * many come as chance has it, so the mean is that of the greater of 1 and a Poisson number.
 */
export function packItems(perPairAndSecond: number, packMs: number): number {
  const come = (perPairAndSecond * packMs) / 1_000
  return come + Math.exp(-come)
}

/**
 * How long a pack of one of so many shards takes items, ms: as measured with few, or until its turn among many comes
 * round: an ingress sends some packs at once, and the next ones a little later. A turn is that spacing, or the append where
 * that takes longer.
 */
export function openMs(shards: number, packMs: number, gatherMs: number): number {
  return Math.max(
    packMs + gatherMs,
    (shards / DEFAULT_MAX_IN_FLIGHT) * Math.max(spacingMs + gatherMs, packMs),
  )
}

/** RSS of an actor with so many open groups, each with so much of a payload in memory as long as there is room. */
export function actorBytes({ process, group }: Memory, groups: number, payload: number): number {
  return process + groups * group + Math.min(PAYLOAD_BUDGET, groups * payload)
}

export interface Demand {
  readonly itemsPerSecond: number
  readonly itemBytes: number
  /** With something buffered. */
  readonly openGroups: number
  readonly batchItems: number
  readonly replicas: Replicas
}

export interface Choice {
  /** Shards a process that runs some; more of them spread better and pack worse. */
  readonly shardsAnActor: number
  /** Beyond what was measured with, ms between the packs of an ingress. No setting: a constant of the packer. */
  readonly gatherMs: number
  /** Independent installations, each with its part of everything. */
  readonly cells: number
  /** Brokers sync each append before they answer, and that takes so long, ms. 0: they do not. */
  readonly fsyncMs: number
}

/** Of one cell, but for `cores`. */
export interface Plan {
  readonly ingresses: number
  readonly actors: number
  readonly shards: number
  readonly brokers: number
  readonly packItems: number
  readonly packsPerSecond: number
  /** How long a pack takes items: what the first of them waits, ms. */
  readonly openMs: number
  /** Of all cells, at `BUSY`. */
  readonly cores: Record<Role, number>
  readonly groupsAnActor: number
  /** Of an actor: its groups, and its share of payloads, bytes. */
  readonly actorBytes: number
  /** Into a broker's network, and as much out of it, bytes a second. */
  readonly brokerBytesPerSecond: number
  /** Renewals of leases that all nodes hear, a second. */
  readonly leaseMessagesPerSecond: number
}

/** How busy a core is planned to be. */
export const BUSY = 0.6
/** Of a broker. */
const BROKER_CORES = 8
const ROUNDS = 50

export function plan(demand: Demand, choice: Choice, constants: Constants): Plan {
  const { cells, shardsAnActor, gatherMs } = choice
  const { costs } = constants
  const packMs = constants.packMs[demand.replicas] + choice.fsyncMs
  const perSecond = demand.itemsPerSecond / cells
  let [ingresses, actors, items] = [1, 1, 1]
  // More of them make smaller packs, which need more of them: from below to where both agree.
  for (let round = 0; round < ROUNDS; round++) {
    const shards = actors * shardsAnActor
    items = packItems(perSecond / (ingresses * shards), openMs(shards, packMs, gatherMs))
    const flow = { packItems: items, batchItems: demand.batchItems }
    ingresses = nodesFor(perSecond, costs.ingresses, flow)
    actors = nodesFor(perSecond, costs.actors, flow)
  }
  const flow = { packItems: items, batchItems: demand.batchItems }
  const replicated = (role: Role) => role === 'NATS' && demand.replicas === 3
  const moving = (role: Role) =>
    perSecond * cpuUs(costs[role], flow) * (replicated(role) ? constants.three.times : 1)
  const brokers = Math.max(demand.replicas, Math.ceil(moving('NATS') / 1e6 / BUSY / BROKER_CORES))
  const nodes = ingresses + actors
  const shards = actors * shardsAnActor
  const groupsAnActor = demand.openGroups / cells / actors
  // What Postgres takes anyway is what an ingress and an actor ask of it.
  const processes: Record<Role, number> = { ingresses, actors, NATS: brokers, Postgres: nodes / 2 }
  const coresOf = (role: Role) => {
    const { shard } = costs[role]
    const { second } = replicated(role) ? constants.three : costs[role]
    return (moving(role) + processes[role] * second + shards * shard) / 1e6 / BUSY
  }
  return {
    ingresses,
    actors,
    brokers,
    packItems: items,
    shards,
    packsPerSecond: perSecond / items,
    openMs: openMs(shards, packMs, gatherMs),
    cores: Object.fromEntries(ROLES.map((role) => [role, cells * coresOf(role)])) as Record<Role, number>,
    groupsAnActor,
    actorBytes: actorBytes(constants.memory, groupsAnActor, demand.itemBytes),
    // In from ingresses and leaders; out to followers and owners is as much.
    brokerBytesPerSecond: (perSecond * demand.itemBytes * demand.replicas) / brokers,
    leaseMessagesPerSecond: nodes * nodes,
  }
}

/** Single-threaded processes that take this, at `BUSY`. */
function nodesFor(perSecond: number, costs: Costs, flow: Flow): number {
  return Math.max(1, Math.ceil((perSecond * cpuUs(costs, flow)) / (BUSY * 1e6 - costs.second)))
}
