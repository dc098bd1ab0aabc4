/** Where the bytes of kept items stand: by the positions of the items, and how many each commit still holds. */
import { Chunks } from '../../runtime/chunks.ts'
import { PositionMap } from './positions.ts'
import type { Position } from './records.ts'

/** The commit that holds a kept item, and which of the commit's kept items it is. */
export interface KeptAt {
  readonly commit: number
  readonly ordinal: number
}

export class KeptPlaces {
  #places = new PositionMap<KeptAt>()
  /** Kept items by commit. */
  #counts = new Chunks<number>()

  get size(): number {
    return this.#places.size
  }

  /** The oldest commit that still holds a kept item; Infinity: none does. */
  get oldestCommit(): number {
    return this.#counts.first?.[0] ?? Number.POSITIVE_INFINITY
  }

  /** The commits that still hold a kept item, in ascending order. */
  *commits(): Generator<number> {
    for (const [commit] of this.#counts.entries()) yield commit
  }

  /** Whether a kept item still stands in this commit. */
  holds(commit: number): boolean {
    return this.#counts.get(commit) !== undefined
  }

  /** 0 when it is empty. */
  get highestSeq(): number {
    return this.#places.highestSeq
  }

  get(seq: number, index: number): KeptAt | undefined {
    return this.#places.get(seq, index)
  }

  has(seq: number, index: number): boolean {
    return this.#places.has(seq, index)
  }

  set(seq: number, index: number, at: KeptAt): void {
    this.delete(seq, index)
    this.#places.set(seq, index, at)
    this.#count(at, 1)
  }

  /** What stands there with another of the same commit. */
  replace({ seq, index }: Position, at: KeptAt): void {
    this.#places.set(seq, index, at)
  }

  delete(seq: number, index: number): void {
    const at = this.#places.get(seq, index)
    if (at === undefined) return
    this.#places.delete(seq, index)
    this.#count(at, -1)
  }

  #count({ commit }: KeptAt, more: 1 | -1): void {
    const count = (this.#counts.get(commit) ?? 0) + more
    if (count > 0) this.#counts.set(commit, 0, count)
    else this.#counts.delete(commit)
  }

  copy(): KeptPlaces {
    const copy = new KeptPlaces()
    copy.#places = this.#places.copy()
    copy.#counts = this.#counts.copy()
    return copy
  }

  /** By position, in ascending order. */
  sorted(): Generator<[Position, KeptAt]> {
    return this.#places.sorted()
  }

  /** As `sorted`. */
  values(): Generator<KeptAt> {
    return this.#places.values()
  }
}
