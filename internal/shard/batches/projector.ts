/**
 * Carries settled batches from the journal into the delivery counters, exactly once: facts and the position
 * they reach are one transaction (docs/architecture/protocol.md, "Counters"). While Postgres is away facts wait in
 * memory; a crash finds them again in the journal, which is purged only behind the stored position.
 */
import type { Clock } from '../../runtime/clock.ts'
import { type CommitName, commitName } from '../journal/commit-name.ts'
import { type DeliveryFact, type Fence, FencedError, type Projection } from '../ports.ts'

const FLUSH_EVERY_MS = 1_000

interface Counted {
  readonly commit: CommitName
  readonly fact: DeliveryFact
}

export class Projector {
  readonly #projection: Projection
  readonly #fence: Fence
  readonly #clock: Clock
  readonly #raised: Promise<void>
  readonly #factsAtOnce: number
  readonly #onFenced: (error: Error) => void
  readonly #onProblem: (error: unknown) => void
  #facts: Counted[] = []
  /** The last commit whose facts are here or stored. */
  #reached: CommitName
  /** Stored in Postgres; null until it was read. */
  #stored: number | null = null
  #flying: Promise<void> | null = null
  #cancelTimer: (() => void) | null = null
  #stopped = false

  constructor(options: {
    projection: Projection
    fence: Fence
    clock: Clock
    /** Facts found in the journal at the claim, and its last commit. */
    facts: Counted[]
    reached: CommitName
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

  /** `data`: the bytes of the commit at `seq`. */
  add(seq: number, data: Uint8Array, fact: DeliveryFact): void {
    if (seq !== this.#reached.seq) this.#reached = commitName(seq, data)
    this.#facts.push({ commit: this.#reached, fact })
  }

  /** The journal reached this commit without further facts. */
  advance(commit: CommitName): void {
    if (commit.seq > this.#reached.seq) this.#reached = commit
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
      this.#facts = this.#facts.filter(({ commit }) => commit.seq > stored)
      this.#stored = stored
    }
    while (this.#stored < this.#reached.seq && !this.#stopped) this.#stored = await this.#storeSome()
  }

  async #storeSome(): Promise<number> {
    const taken = this.#facts.slice(0, this.#wholeCommits())
    const position = taken.length < this.#facts.length ? taken.at(-1)!.commit : this.#reached
    try {
      const facts = taken.map(({ fact }) => fact)
      await this.#projection.project(this.#fence, position, facts)
    } catch (error) {
      // Stored or not, nobody knows: the position is read before anything is sent again.
      this.#stored = null
      throw error
    }
    this.#facts.splice(0, taken.length)
    return position.seq
  }

  /** A position stands for whole commits: a cut never falls between two facts of one. */
  #wholeCommits(): number {
    let end = Math.min(this.#factsAtOnce, this.#facts.length)
    while (end < this.#facts.length && this.#facts[end]!.commit.seq === this.#facts[end - 1]!.commit.seq)
      end++
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
