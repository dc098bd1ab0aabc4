/**
 * Carries settled batches from the journal into the delivery counters, exactly once: facts and the position
 * they reach are one transaction (docs/architecture/protocol.md, "Counters"). While Postgres is away facts wait in
 * memory; a crash finds them again in the journal, which is purged only behind the stored position.
 */
import type { Clock } from '../../runtime/clock.ts'
import { type DeliveryFact, type Fence, FencedError, type Projection } from '../ports.ts'

const FLUSH_EVERY_MS = 1_000

export class Projector {
  readonly #projection: Projection
  readonly #fence: Fence
  readonly #clock: Clock
  readonly #raised: Promise<void>
  readonly #factsAtOnce: number
  readonly #onFenced: (error: Error) => void
  readonly #onProblem: (error: unknown) => void
  #facts: { seq: number; fact: DeliveryFact }[] = []
  /** Sequence of the last commit whose facts are here or stored. */
  #reached: number
  /** Stored in Postgres; null until it was read. */
  #stored: number | null = null
  #flying: Promise<void> | null = null
  #cancelTimer: (() => void) | null = null
  #stopped = false

  constructor(options: {
    projection: Projection
    fence: Fence
    clock: Clock
    /** Facts found in the journal at the claim, and the sequence it reaches. */
    facts: { seq: number; fact: DeliveryFact }[]
    reached: number
    /** One transaction counts about so many facts at most. */
    factsAtOnce: number
    /** Resolves when Postgres knows this epoch. */
    raised: Promise<void>
    onFenced: (error: Error) => void
    onProblem: (error: unknown) => void
  }) {
    this.#projection = options.projection
    this.#fence = options.fence
    this.#clock = options.clock
    this.#facts = options.facts
    this.#reached = options.reached
    this.#raised = options.raised
    this.#factsAtOnce = options.factsAtOnce
    this.#onFenced = options.onFenced
    this.#onProblem = options.onProblem
    this.#arm()
  }

  /** The journal may be purged up to here; 0 while unknown. */
  get position(): number {
    return this.#stored ?? 0
  }

  get waiting(): number {
    return this.#facts.length
  }

  add(seq: number, fact: DeliveryFact): void {
    this.#facts.push({ seq, fact })
    this.#reached = seq
  }

  /** The journal reached `seq` without further facts. */
  advance(seq: number): void {
    this.#reached = Math.max(this.#reached, seq)
  }

  /** Stores what is known now; rejects when Postgres is away. */
  async flush(): Promise<void> {
    while (this.#flying) await this.#flying.catch(() => {})
    this.#flying = this.#store().finally(() => {
      this.#flying = null
    })
    await this.#flying
  }

  stop(): void {
    this.#stopped = true
    this.#cancelTimer?.()
  }

  async #store(): Promise<void> {
    await this.#raised
    if (this.#stored === null) {
      const stored = await this.#projection.position(this.#fence.shard)
      this.#facts = this.#facts.filter(({ seq }) => seq > stored)
      this.#stored = stored
    }
    while (this.#stored < this.#reached && !this.#stopped) this.#stored = await this.#storeSome()
  }

  async #storeSome(): Promise<number> {
    const taken = this.#facts.slice(0, this.#wholeCommits())
    const position = taken.length < this.#facts.length ? taken.at(-1)!.seq : this.#reached
    try {
      const facts = taken.map(({ fact }) => fact)
      await this.#projection.project(this.#fence, position, facts)
    } catch (error) {
      // Stored or not, nobody knows: the position is read before anything is sent again.
      this.#stored = null
      throw error
    }
    this.#facts.splice(0, taken.length)
    return position
  }

  /** A position stands for whole commits: a cut never falls between two facts of one. */
  #wholeCommits(): number {
    let end = Math.min(this.#factsAtOnce, this.#facts.length)
    while (end < this.#facts.length && this.#facts[end]!.seq === this.#facts[end - 1]!.seq) end++
    return end
  }

  #arm(): void {
    if (this.#stopped) return
    this.#cancelTimer = this.#clock.after(FLUSH_EVERY_MS, () => void this.#tick())
  }

  async #tick(): Promise<void> {
    try {
      if (this.#facts.length > 0 || this.#stored === null) await this.flush()
    } catch (error) {
      if (this.#stopped) return
      if (error instanceof FencedError) this.#onFenced(error)
      else this.#onProblem(error)
    }
    this.#arm()
  }
}
