/** Nodes that come and go, planned for by the current assignment and by hashing alone. */
import { placeShards } from '../../../internal/shard/ownership/placement.ts'
import { rendezvousSeed, rendezvousWeight } from '../../../internal/shard/ownership/rendezvous.ts'
import { seededFractions } from '../../support/seeded.ts'
import { carriedOut, idle, loadsOf, movedShards, type Plan } from '../memberships.ts'

const SEEDS = 20
/** Hashing weighs every shard for every node, twice: a comparison, so fewer will do. */
const HASHED_SEEDS = 5
/** Times that a node is replaced by another before anything is measured. */
const REPLACEMENTS = 3

/** What one change of the members moved, and the load after it. */
export interface Change {
  /** Onto the joiner, or off the leaver. */
  own: number
  /** From one node that stays to another. */
  others: number
  /** Shards of the node with the most. */
  most: number
}

/** The greatest of all seeds. */
export interface Simulated {
  shards: number
  nodes: number
  /** Shards of the node with the fewest and with the most, before the change. */
  least: number
  most: number
  join: Change
  /** Null when no node stays. */
  leave: Change | null
  /** The same join by hashing alone: a shard goes to its heaviest node below the load cap, wherever it runs. */
  hashedJoin: Change
}

/** Shards that a node may have (docs/architecture/protocol.md, "Placement"). */
export function loadCap(shards: number, nodes: number): number {
  return Math.ceil((1.25 * shards) / nodes)
}

export function simulate(shards: number, nodes: number): Simulated {
  const runs = Array.from({ length: SEEDS }, (_, seed) => simulateOne(shards, nodes, seed))
  return {
    shards,
    nodes,
    least: Math.min(...runs.map(({ least }) => least)),
    most: Math.max(...runs.map(({ most }) => most)),
    join: greatest(runs.map(({ join }) => join)),
    leave: nodes === 1 ? null : greatest(runs.map(({ leave }) => leave!)),
    hashedJoin: greatest(runs.slice(0, HASHED_SEEDS).map(({ joined }) => hashedJoin(shards, joined))),
  }
}

function simulateOne(shards: number, nodes: number, seed: number) {
  const fraction = seededFractions(seed * 1_000_003 + shards * 1_009 + nodes)
  const before = afterReplacements(shards, nodes, fraction)
  const joined = [...before.boots, newBoot(fraction)]
  const stayed = before.boots.toSpliced(Math.floor(fraction() * nodes), 1)
  const loads = loadsOf(before.plan, before.boots)
  return {
    joined,
    least: Math.min(...loads),
    most: Math.max(...loads),
    join: plannedChange(before, joined),
    leave: nodes === 1 ? null : plannedChange(before, stayed),
  }
}

interface Placed {
  plan: Plan
  boots: readonly string[]
}

function afterReplacements(shards: number, nodes: number, fraction: () => number): Placed {
  let boots = Array.from({ length: nodes }, () => newBoot(fraction))
  let plan: Plan = placeShards(shards, idle(boots))
  for (let turn = 0; turn < REPLACEMENTS; turn++) {
    boots = boots.toSpliced(Math.floor(fraction() * nodes), 1, newBoot(fraction))
    plan = placeShards(shards, carriedOut(plan, boots))
  }
  return { boots, plan }
}

function newBoot(fraction: () => number): string {
  return Array.from({ length: 4 }, () => Math.floor(fraction() * 2 ** 32).toString(16)).join('-')
}

function plannedChange(before: Placed, boots: readonly string[]): Change {
  const plan = placeShards(before.plan.length, carriedOut(before.plan, boots))
  return changeOf(before, { plan, boots })
}

function changeOf(before: Placed, after: Placed): Change {
  const [old, now] = [new Set<string | null>(before.boots), new Set<string | null>(after.boots)]
  const moved = movedShards(before.plan, after.plan)
  const others = moved.filter((shard) => now.has(before.plan[shard]!) && old.has(after.plan[shard]!)).length
  return { own: moved.length - others, others, most: Math.max(...loadsOf(after.plan, after.boots)) }
}

function greatest(changes: readonly Change[]): Change {
  const of = (figure: keyof Change) => Math.max(...changes.map((change) => change[figure]))
  return { own: of('own'), others: of('others'), most: of('most') }
}

/** Before and after the last of `joined` came. */
function hashedJoin(shards: number, joined: readonly string[]): Change {
  const boots = joined.slice(0, -1)
  const seeds = joined.map(rendezvousSeed)
  const [before, after] = [new Hashing(shards, boots), new Hashing(shards, joined)]
  const weights = new Float64Array(seeds.length)
  for (let shard = 0; shard < shards; shard++) {
    for (let node = 0; node < seeds.length; node++) weights[node] = rendezvousWeight(seeds[node]!, shard)
    before.place(weights)
    after.place(weights)
  }
  return changeOf({ plan: before.plan, boots }, { plan: after.plan, boots: joined })
}

class Hashing {
  readonly plan: string[] = []
  readonly #boots: readonly string[]
  readonly #room: number[]

  constructor(shards: number, boots: readonly string[]) {
    this.#boots = boots
    this.#room = boots.map(() => loadCap(shards, boots.length))
  }

  /** The next shard, by its weight for each node. */
  place(weights: Float64Array): void {
    let taker = -1
    for (let node = 0; node < this.#room.length; node++) {
      if (this.#room[node]! > 0 && (taker < 0 || weights[node]! > weights[taker]!)) taker = node
    }
    this.#room[taker]!--
    this.plan.push(this.#boots[taker]!)
  }
}
