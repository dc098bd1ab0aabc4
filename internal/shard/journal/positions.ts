/** Sets and maps of inbox positions, compact where packs hold one item and where they hold hundreds. */
import type { Position } from './records.ts'

/** Positions of one sequence fit into a small integer up to this index; above it a bitmap is used. */
const SMALL = 30

export class PositionSet {
  readonly #bySeq = new Map<number, number | Uint32Array>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** 0 when it is empty. */
  get highestSeq(): number {
    return highest(this.#bySeq.keys())
  }

  has(seq: number, index: number): boolean {
    const bits = this.#bySeq.get(seq)
    if (bits === undefined) return false
    if (typeof bits === 'number') return index < SMALL && (bits & (1 << index)) !== 0
    return ((bits[index >>> 5] ?? 0) & (1 << (index & 31))) !== 0
  }

  add(seq: number, index: number): void {
    if (this.has(seq, index)) return
    this.#size++
    const bits = this.#bySeq.get(seq) ?? 0
    if (typeof bits === 'number' && index < SMALL) {
      this.#bySeq.set(seq, bits | (1 << index))
      return
    }
    const bitmap = widen(bits, index)
    bitmap[index >>> 5]! |= 1 << (index & 31)
    this.#bySeq.set(seq, bitmap)
  }

  /** Forgets what is below `seq`. */
  pruneBelow(seq: number): void {
    for (const key of this.#bySeq.keys()) {
      if (key >= seq) continue
      this.#size -= countBits(this.#bySeq.get(key)!)
      this.#bySeq.delete(key)
    }
  }

  /** In ascending order. */
  *sorted(): Generator<Position> {
    for (const seq of [...this.#bySeq.keys()].sort((a, b) => a - b)) {
      const bits = this.#bySeq.get(seq)!
      const end = typeof bits === 'number' ? SMALL : bits.length * 32
      for (let index = 0; index < end; index++) if (this.has(seq, index)) yield { seq, index }
    }
  }
}

function highest(seqs: Iterable<number>): number {
  let found = 0
  for (const seq of seqs) if (seq > found) found = seq
  return found
}

function widen(bits: number | Uint32Array, index: number): Uint32Array {
  const words = Math.max((index >>> 5) + 1, typeof bits === 'number' ? 1 : bits.length)
  if (typeof bits !== 'number' && bits.length >= words) return bits
  const bitmap = new Uint32Array(words)
  if (typeof bits === 'number') bitmap[0] = bits
  else bitmap.set(bits)
  return bitmap
}

function countBits(bits: number | Uint32Array): number {
  const words = typeof bits === 'number' ? [bits] : bits
  let count = 0
  for (const word of words) for (let rest = word >>> 0; rest !== 0; rest &= rest - 1) count++
  return count
}

/** The values of one sequence once there are several, or one that is not at index 0. */
class Row<T> {
  left = 0
  readonly values: (T | undefined)[] = []
}

/** Packs of one item are the rule at rest: their value stands in the map itself, without a row. */
export class PositionMap<T extends object> {
  readonly #bySeq = new Map<number, T | Row<T>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The sequence that was set first among those still here: the lowest, when they were set in order. */
  get firstSeq(): number | undefined {
    for (const seq of this.#bySeq.keys()) return seq
    return undefined
  }

  /** 0 when it is empty. */
  get highestSeq(): number {
    return highest(this.#bySeq.keys())
  }

  get(seq: number, index: number): T | undefined {
    const at = this.#bySeq.get(seq)
    if (at instanceof Row) return at.values[index]
    return index === 0 ? at : undefined
  }

  has(seq: number, index: number): boolean {
    return this.get(seq, index) !== undefined
  }

  set(seq: number, index: number, value: T): void {
    const at = this.#bySeq.get(seq)
    if (at === undefined && index === 0) {
      this.#bySeq.set(seq, value)
      this.#size++
    } else this.#setIn(this.#rowAt(seq, at), index, value)
  }

  #rowAt(seq: number, at: T | Row<T> | undefined): Row<T> {
    if (at instanceof Row) return at
    const row = new Row<T>()
    if (at !== undefined) {
      row.values.push(at)
      row.left = 1
    }
    this.#bySeq.set(seq, row)
    return row
  }

  #setIn(row: Row<T>, index: number, value: T): void {
    while (row.values.length < index) row.values.push(undefined)
    if (row.values[index] === undefined) {
      row.left++
      this.#size++
    }
    row.values[index] = value
  }

  delete(seq: number, index: number): boolean {
    if (!this.has(seq, index)) return false
    const at = this.#bySeq.get(seq)
    if (at instanceof Row) {
      at.values[index] = undefined
      at.left--
    }
    if (!(at instanceof Row) || at.left === 0) this.#bySeq.delete(seq)
    this.#size--
    return true
  }

  /** In ascending order. */
  *sorted(): Generator<[Position, T]> {
    for (const seq of [...this.#bySeq.keys()].sort((a, b) => a - b)) {
      for (const [index, value] of this.#at(seq)) yield [{ seq, index }, value]
    }
  }

  *values(): Generator<T> {
    for (const seq of this.#bySeq.keys()) for (const [, value] of this.#at(seq)) yield value
  }

  *#at(seq: number): Generator<[number, T]> {
    const at = this.#bySeq.get(seq)!
    if (!(at instanceof Row)) yield [0, at]
    else for (const [index, value] of at.values.entries()) if (value !== undefined) yield [index, value]
  }
}
