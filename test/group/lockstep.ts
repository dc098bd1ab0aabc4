/**
 * The machine and the naive group side by side: every input goes to both, and the first difference throws.
 * It also keeps what a shard would: the wakes on their way, the batches that wait for it, each item's end.
 */
import { step } from '../../internal/group/machine.ts'
import type { Batch, Effect, GroupPolicy, Input } from '../../internal/group/model.ts'
import { createGroup, type GroupState } from '../../internal/group/state.ts'
import { NaiveGroup } from './naive-group.ts'
import { effectText, type NamedItem } from './notation.ts'

/** One batch as the two sides know it. */
export interface Pair {
  readonly real: Batch<NamedItem>
  readonly naive: Batch<NamedItem>
}

type Named = Input<NamedItem>
/** Inputs that name no batch, and the rest of those that do. */
export type Plain = Exclude<Named, { batch: unknown }>
export type About = Named extends infer K ? (K extends { batch: unknown } ? Omit<K, 'batch'> : never) : never

export class Lockstep {
  readonly trace: string[] = []
  policy: GroupPolicy
  /** The last input left nothing behind; the next one finds a new group. */
  retired = false
  #state: GroupState<NamedItem>
  #naive: NaiveGroup
  #pairs: Pair[] = []
  /** Every item's end; undefined while it is live. */
  readonly #fate = new Map<NamedItem, string | undefined>()
  #wakes: number[] = []

  /** From `at` on, ms. */
  constructor(policy: GroupPolicy, at: number) {
    this.policy = policy
    this.#state = createGroup(policy, at)
    this.#naive = new NaiveGroup(policy, at)
    this.trace.push(JSON.stringify(policy))
  }

  get now(): number {
    return this.#naive.now
  }

  get waiting(): NamedItem[] {
    return this.#naive.waiting.map(({ item }) => item)
  }

  /** Batches for which the shard has something to do or to answer. */
  get busy(): Pair[] {
    return this.#pairs.filter(({ naive }) => this.#naive.batches.includes(naive) && naive.phase !== 'waiting')
  }

  get batchCount(): number {
    return this.#pairs.length
  }

  get earliestWake(): number | undefined {
    return this.#wakes.length === 0 ? undefined : Math.min(...this.#wakes)
  }

  newItem(bytes: number, at: number): NamedItem {
    const item = { name: `i${this.#fate.size}`, bytes, at }
    this.#fate.set(item, undefined)
    return item
  }

  step(input: Plain): void {
    if (input.kind === 'policy') this.policy = input.policy
    if (input.kind === 'dropped') this.#end([input.item], 'dropped')
    this.#both(input, input)
  }

  about({ real, naive }: Pair, input: About): void {
    if (input.kind === 'settled') this.#end(real.items, real.phase)
    this.#both({ ...input, batch: real } as Named, { ...input, batch: naive } as Named)
  }

  /** Every item came to exactly one end. */
  assertNothingLost(): void {
    for (const [item, fate] of this.#fate) if (!fate) throw new Error(`${item.name} was lost`)
  }

  #both(input: Named, naiveInput: Named): void {
    this.trace.push(inputText(input, this.#label))
    const before = new Set(this.#state.batches)
    const { state, effects } = step(this.#state, input)
    this.#state = state
    const expected = this.#naive.step(naiveInput)
    this.#learn(before)
    this.#compare(effects, expected)
    this.#checkWakes(input, effects)
    for (const effect of effects)
      if (effect.kind === 'discard' && !effect.batch) this.#end(effect.items, 'discarded')
    this.retired = effects.some((effect) => effect.kind === 'retire')
    if (this.retired) this.#forget()
  }

  #compare(effects: Effect<NamedItem>[], expected: Effect<NamedItem>[]): void {
    const lines = effects.map((effect) => effectText(effect, this.#label))
    this.trace.push(...lines.map((line) => `    ${line}`))
    const actual = lines.filter((line) => !line.startsWith('wake')).join('\n')
    const wanted = expected.map((effect) => effectText(effect, this.#label)).join('\n')
    if (actual !== wanted) throw new Error(`expected\n${wanted}\nbut got\n${actual}`)
  }

  /** A wake is on its way whenever a tick will do something, none after that, and none for nothing. */
  #checkWakes(input: Named, effects: Effect<NamedItem>[]): void {
    const deferred = input.kind === 'unsealed' || input.kind === 'dropped'
    const useful = deferred ? this.now : this.#naive.nextUseful()
    if (input.kind === 'tick') this.#wakes = this.#wakes.filter((wake) => wake > input.at)
    for (const effect of effects) {
      if (effect.kind !== 'wake') continue
      if (effect.at !== useful) throw new Error(`a wake at ${effect.at} where ${useful} is useful`)
      this.#wakes.push(effect.at)
    }
    if (useful === undefined || (this.earliestWake ?? Number.POSITIVE_INFINITY) <= useful) return
    throw new Error(`a tick is useful at ${useful}, the next wake is ${this.earliestWake}`)
  }

  readonly #label = (batch: unknown): string => {
    const index = this.#pairs.findIndex(({ real, naive }) => real === batch || naive === batch)
    return `#${index + 1}`
  }

  /** New batches appear on both sides in the same step, in the same order. */
  #learn(before: Set<Pair['real']>): void {
    const real = (this.#state.batches ?? []).filter((batch) => !before.has(batch))
    const naive = this.#naive.batches.filter((batch) => !this.#pairs.some((pair) => pair.naive === batch))
    if (real.length !== naive.length) throw new Error(`${real.length} new batches, expected ${naive.length}`)
    this.#pairs.push(...real.map((batch, index) => ({ real: batch, naive: naive[index]! })))
  }

  #end(items: readonly NamedItem[], fate: string): void {
    for (const item of items) {
      if (this.#fate.get(item)) throw new Error(`${item.name} ended twice: ${this.#fate.get(item)}, ${fate}`)
      this.#fate.set(item, fate)
    }
  }

  #forget(): void {
    const { lastSealAt } = this.#state
    this.#state = createGroup(this.policy, this.now, lastSealAt)
    this.#naive = new NaiveGroup(this.policy, this.now, lastSealAt)
    this.#wakes = []
  }
}

function inputText(input: Named, label: (batch: unknown) => string): string {
  const { kind, at, ...rest } = input
  const detail = Object.entries(rest).map(([key, value]) =>
    key === 'batch' ? label(value) : JSON.stringify(value),
  )
  return `${at} ${kind} ${detail.join(' ')}`
}
