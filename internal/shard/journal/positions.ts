/** Sorted sets and maps of inbox positions. A copy takes a moment, whatever they hold (`../../runtime/chunks.ts`). */
import { Chunks } from '../../runtime/chunks.ts'
import type { Position } from './records.ts'

/** Positions of one sequence that share a word. */
const WORD = 32

export class PositionSet {
  /** By sequence and word: the bits of 32 indexes. */
  #words = new Chunks<number>()

  /** 0 when it is empty. */
  get highestSeq(): number {
    return this.#words.last?.[0] ?? 0
  }

  has(seq: number, index: number): boolean {
    return ((this.#words.get(seq, Math.floor(index / WORD)) ?? 0) & (1 << (index % WORD))) !== 0
  }

  add(seq: number, index: number): void {
    const word = Math.floor(index / WORD)
    this.#words.set(seq, word, (this.#words.get(seq, word) ?? 0) | (1 << (index % WORD)))
  }

  /** Forgets what is below `seq`. */
  pruneBelow(seq: number): void {
    this.#words.pruneBelow(seq)
  }

  copy(): PositionSet {
    const copy = new PositionSet()
    copy.#words = this.#words.copy()
    return copy
  }

  /** In ascending order. */
  *sorted(): Generator<Position> {
    for (const [seq, word, bits] of this.#words.entries()) {
      for (let bit = 0; bit < WORD; bit++) {
        if ((bits & (1 << bit)) !== 0) yield { seq, index: word * WORD + bit }
      }
    }
  }
}

export class PositionMap<T extends object> extends Chunks<T> {
  get lowestSeq(): number | undefined {
    return this.first?.[0]
  }

  /** 0 when it is empty. */
  get highestSeq(): number {
    return this.last?.[0] ?? 0
  }

  has(seq: number, index: number): boolean {
    return this.get(seq, index) !== undefined
  }

  override copy(): PositionMap<T> {
    return this.shareWith(new PositionMap<T>())
  }

  /** In ascending order; of now, as `entries`. */
  *sorted(): Generator<[Position, T]> {
    for (const [seq, index, value] of this.entries()) yield [{ seq, index }, value]
  }

  /** As `sorted`. */
  *values(): Generator<T> {
    for (const [, , value] of this.entries()) yield value
  }
}
