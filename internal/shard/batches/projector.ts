/**
 * Carries settled batches from the journal into the delivery counters, exactly once: facts and the position
 * they reach are one transaction (docs/architecture/protocol.md, "Counters"). While Postgres is away facts wait in
 * memory; a crash finds them again in the journal, which is purged only behind the stored position.
 */
import { Rounds } from '../../runtime/rounds.ts'
import { type CommitName, commitName } from '../journal/commit-name.ts'
import type { ShardEvents, ShardOptions } from '../options.ts'
import { type DeliveryFact, type Fence, FencedError } from '../ports.ts'

const FLUSH_EVERY_MS = 1_000

interface Counted {
  readonly commit: CommitName
  readonly fact: DeliveryFact
}

export interface ProjectorOptions
  extends Pick<ShardOptions, 'projection' | 'clock' | 'limits'>,
    Pick<ShardEvents, 'onFatal' | 'onProblem'> {
  readonly fence: Fence
  /** Resolves when Postgres knows this epoch. */
  readonly raised: Promise<void>
}

export class Projector {
  readonly #options: ProjectorOptions
  readonly #rounds: Rounds
  #facts: Counted[]
  /** The last commit whose facts are here or stored. */
  #reached: CommitName
  /** Stored in Postgres; null until it was read. */
  #stored: number | null = null
  #flying: Promise<void> | null = null
  #stopped = false

  /** Begins with the facts found in the journal at the claim, and its last commit. */
  constructor(options: ProjectorOptions, facts: Counted[], reached: CommitName) {
    this.#options = options
    this.#facts = facts
    this.#reached = reached
    this.#rounds = new Rounds({
      clock: options.clock,
      everyMs: FLUSH_EVERY_MS,
      round: async () => {
        if (this.#facts.length > 0 || this.#stored === null) await this.flush()
      },
      onProblem: (error) => {
        if (error instanceof FencedError) options.onFatal(error)
        else options.onProblem('delivery counters', error)
      },
    })
    this.#rounds.startLater()
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
    void this.#rounds.stop()
  }

  async #store(): Promise<void> {
    const { raised, projection, fence } = this.#options
    await raised
    if (this.#stored === null) {
      const stored = await projection.position(fence.shard)
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
      await this.#options.projection.project(this.#options.fence, position, facts)
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
    let end = Math.min(this.#options.limits.factsAtOnce, this.#facts.length)
    while (end < this.#facts.length && this.#facts[end]!.commit.seq === this.#facts[end - 1]!.commit.seq)
      end++
    return end
  }
}
