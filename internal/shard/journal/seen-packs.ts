/**
 * Which packs were seen of each writer (docs/architecture/protocol.md, "Packs"): the number of its last one, because its
 * packs first stand in an inbox in the order of their numbers.
 *
 * Invariant: a pack is never taken for a repeated one unless this writer's number, or a later one, was noted. What is
 * forgotten past the bound makes repeated packs look new, and never new ones repeated.
 */
import type { PackName } from '../../domain/pack-id.ts'

/** Writers that are remembered, a restart of an ingress each; about 100 bytes each. */
export const MOST_WRITERS = 4_096

export class SeenPacks {
  /** The writer that was noted last comes last. */
  readonly #last: Map<string, number>
  readonly #most: number
  /** Every pack up to this inbox sequence is noted. */
  upTo: number

  constructor(upTo = 0, last: Iterable<readonly [string, number]> = [], most = MOST_WRITERS) {
    this.upTo = upTo
    this.#last = new Map(last)
    this.#most = most
  }

  has({ writer, number }: PackName): boolean {
    const last = this.#last.get(writer)
    return last !== undefined && number <= last
  }

  note({ writer, number }: PackName): void {
    const last = this.#last.get(writer)
    this.#last.delete(writer)
    this.#last.set(writer, last === undefined ? number : Math.max(last, number))
    if (this.#last.size > this.#most) this.#forgetOldest()
  }

  get(writer: string): number | undefined {
    return this.#last.get(writer)
  }

  get size(): number {
    return this.#last.size
  }

  entries(): Iterable<readonly [string, number]> {
    return this.#last
  }

  copy(): SeenPacks {
    return new SeenPacks(this.upTo, this.#last, this.#most)
  }

  #forgetOldest(): void {
    for (const writer of this.#last.keys()) {
      this.#last.delete(writer)
      return
    }
  }
}
