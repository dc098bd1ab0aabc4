/** The groups and timers of one shard, the real ones, under a load of its own in virtual time. */
import { step } from '../../internal/group/machine.ts'
import type { Batch, Effect, GroupItem, GroupPolicy } from '../../internal/group/model.ts'
import { createGroup, type GroupState, isEmpty } from '../../internal/group/state.ts'
import { type Wakeable, Wakes } from '../../internal/shard/held/wakes.ts'
import { VirtualTime } from './virtual-time.ts'

/** From a seal's request to its commit, and from a delivery's begin to its answer, virtual ms. */
const COMMIT_MS = 5
const DELIVERY_MS = 50
const START = 1_763_000_000_000

export interface ShardLoad {
  /** Group keys that exist; each item is of one of them, with equal chances. */
  readonly keys: number
  readonly itemsPerSecond: number
  readonly itemBytes: number
  readonly policy: GroupPolicy
  /** Time in which keys begin to have items, one after the other, ms: begun together, their groups would all be due together. */
  readonly rampMs: number
  /** Passes before anything is counted, ms; then `measureMs` count. */
  readonly warmMs: number
  readonly measureMs: number
}

export interface ShardFigures {
  items: number
  batches: number
  /** Wakes that came, of those that were armed. */
  wakes: number
  armed: number
  /** Groups with something buffered, at the end. */
  openGroups: number
  /** Seals asked for within one ms, the most of all. */
  mostAtOnce: number
  /** Seal asked for minus due, the greatest, ms. */
  lateMs: number
}

interface Group extends Wakeable {
  state: GroupState<GroupItem>
}

export function simulateShard(load: ShardLoad, fraction: () => number): ShardFigures {
  return new SimulatedShard(load, fraction).run()
}

class SimulatedShard {
  readonly #load: ShardLoad
  readonly #fraction: () => number
  readonly #time = new VirtualTime(START)
  readonly #groups = new Map<number, Group>()
  readonly #wakes: Wakes<Group>
  #version = 0
  #counting = false
  #thisMs = { at: 0, seals: 0 }
  readonly #figures: ShardFigures = {
    items: 0,
    batches: 0,
    wakes: 0,
    armed: 0,
    openGroups: 0,
    mostAtOnce: 0,
    lateMs: 0,
  }

  constructor(load: ShardLoad, fraction: () => number) {
    this.#load = load
    this.#fraction = fraction
    this.#wakes = new Wakes(this.#time, (group, now) => {
      if (this.#counting) this.#figures.wakes++
      this.#follow(group, step(group.state, { kind: 'tick', at: now }).effects)
    })
  }

  run(): ShardFigures {
    const { warmMs, measureMs } = this.#load
    this.#arrive()
    this.#time.runUntil(START + warmMs)
    this.#counting = true
    this.#time.runUntil(START + warmMs + measureMs)
    for (const { state } of this.#groups.values()) if (!isEmpty(state)) this.#figures.openGroups++
    return this.#figures
  }

  /** Items come independently of each other: gaps are exponential. */
  #arrive(): void {
    const gapMs = (-Math.log(1 - this.#fraction()) * 1_000) / this.#load.itemsPerSecond
    this.#time.after(gapMs, () => this.#arrive())
    const key = Math.floor(this.#fraction() * this.#load.keys)
    if (this.#time.now() - START >= (key / this.#load.keys) * this.#load.rampMs) this.#take(key)
  }

  #take(key: number): void {
    const { itemBytes, policy } = this.#load
    const at = this.#time.now()
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = { state: createGroup(policy, at), wakeAt: Number.POSITIVE_INFINITY, wakeIndex: -1 }
      this.#groups.set(key, group)
    }
    if (this.#counting) this.#figures.items++
    this.#follow(group, step(group.state, { kind: 'item', at, item: { bytes: itemBytes, at } }).effects)
  }

  #follow(group: Group, effects: readonly Effect<GroupItem>[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'wake':
          if (this.#counting) this.#figures.armed++
          this.#wakes.arm(group, effect.at)
          break
        case 'seal':
          this.#seal(group, effect.batch)
          break
        case 'deliver':
          this.#time.after(DELIVERY_MS, () => this.#delivered(group, effect.batch))
          break
        case 'ack':
          this.#time.after(COMMIT_MS, () => this.#settled(group, effect.batch))
          break
        case 'retire':
          this.#wakes.disarm(group)
          break
        default:
          throw new Error(`nothing fails here, and yet: ${effect.kind}`)
      }
    }
  }

  #seal(group: Group, batch: Batch<GroupItem>): void {
    const at = this.#time.now()
    if (this.#counting) {
      this.#figures.batches++
      this.#figures.lateMs = Math.max(this.#figures.lateMs, at - batch.dueAt)
      const ms = Math.floor(at)
      if (this.#thisMs.at !== ms) this.#thisMs = { at: ms, seals: 0 }
      this.#figures.mostAtOnce = Math.max(this.#figures.mostAtOnce, ++this.#thisMs.seals)
    }
    this.#time.after(COMMIT_MS, () => {
      const input = { kind: 'sealed', at: this.#time.now(), batch, version: ++this.#version } as const
      this.#follow(group, step(group.state, input).effects)
    })
  }

  #delivered(group: Group, batch: Batch<GroupItem>): void {
    const input = { kind: 'result', at: this.#time.now(), batch, result: 'delivered' } as const
    this.#follow(group, step(group.state, input).effects)
  }

  #settled(group: Group, batch: Batch<GroupItem>): void {
    this.#follow(group, step(group.state, { kind: 'settled', at: this.#time.now(), batch }).effects)
  }
}
