/**
 * A sorted map from pairs of numbers, in chunks of bounded length: no operation takes longer than one chunk, or the list of
 * chunks, does. A copy shares the chunks until one of the two changes them.
 *
 * Invariant: no chunk is empty, and a chunk is changed only by the map that owns it.
 */

/** Entries of a chunk at most. */
const MOST = 256

class Chunk<V> {
  readonly owner: object
  majors: number[] = []
  minors: number[] = []
  values: V[] = []

  constructor(owner: object) {
    this.owner = owner
  }

  get length(): number {
    return this.values.length
  }

  /** Entries `from` to `to` as a chunk of that owner. */
  slice(owner: object, from?: number, to?: number): Chunk<V> {
    const part = new Chunk<V>(owner)
    part.majors = this.majors.slice(from, to)
    part.minors = this.minors.slice(from, to)
    part.values = this.values.slice(from, to)
    return part
  }

  /** Of the first entry at or above the key. */
  indexOf(major: number, minor: number): number {
    const { majors, minors } = this
    let low = 0
    let high = majors.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const at = majors[middle]!
      if (at < major || (at === major && minors[middle]! < minor)) low = middle + 1
      else high = middle
    }
    return low
  }

  holds(index: number, major: number, minor: number): boolean {
    return this.majors[index] === major && this.minors[index] === minor
  }

  insert(index: number, major: number, minor: number, value: V): void {
    if (index === this.values.length) {
      this.majors.push(major)
      this.minors.push(minor)
      this.values.push(value)
    } else {
      this.majors.splice(index, 0, major)
      this.minors.splice(index, 0, minor)
      this.values.splice(index, 0, value)
    }
  }

  remove(from: number, count: number): void {
    this.majors.splice(from, count)
    this.minors.splice(from, count)
    this.values.splice(from, count)
  }

  append(other: Chunk<V>): void {
    this.majors = this.majors.concat(other.majors)
    this.minors = this.minors.concat(other.minors)
    this.values = this.values.concat(other.values)
  }
}

export type Entry<V> = readonly [major: number, minor: number, value: V]

/** `undefined` is no value. */
export class Chunks<V> {
  #chunks: Chunk<V>[] = []
  #owner = {}
  #size = 0
  /** Of the keys: a walk looks for its place again. */
  #changes = 0

  get size(): number {
    return this.#size
  }

  get first(): Entry<V> | undefined {
    return entryOf(this.#chunks[0], 0)
  }

  get last(): Entry<V> | undefined {
    const chunk = this.#chunks.at(-1)
    return entryOf(chunk, (chunk?.length ?? 0) - 1)
  }

  get(major: number, minor = 0): V | undefined {
    const chunk = this.#chunks[this.#chunkAt(major, minor)]
    if (chunk === undefined) return undefined
    const index = chunk.indexOf(major, minor)
    return chunk.holds(index, major, minor) ? chunk.values[index] : undefined
  }

  set(major: number, minor: number, value: V): void {
    const at = this.#chunkAt(major, minor)
    if (this.#chunks.length === 0) this.#chunks.push(new Chunk(this.#owner))
    const index = this.#chunks[at]!.indexOf(major, minor)
    const chunk = this.#own(at)
    if (chunk.holds(index, major, minor)) {
      chunk.values[index] = value
      return
    }
    this.#size++
    this.#changes++
    if (chunk.length < MOST) chunk.insert(index, major, minor, value)
    else {
      const [half, place] = this.#split(at, index)
      half.insert(place, major, minor, value)
    }
  }

  /** Answers whether it was there. */
  delete(major: number, minor = 0): boolean {
    const at = this.#chunkAt(major, minor)
    const index = this.#chunks[at]?.indexOf(major, minor) ?? 0
    if (!this.#chunks[at]?.holds(index, major, minor)) return false
    this.#own(at).remove(index, 1)
    this.#size--
    this.#changes++
    this.#join(at)
    return true
  }

  /** Forgets the entries whose major number is below: whole chunks, and the beginning of one. */
  pruneBelow(major: number): void {
    const at = this.#chunkAt(major, Number.NEGATIVE_INFINITY)
    for (const { length } of this.#chunks.splice(0, at)) this.#size -= length
    const below = this.#chunks[0]?.indexOf(major, Number.NEGATIVE_INFINITY) ?? 0
    this.#changes++
    if (below === 0) return
    this.#own(0).remove(0, below)
    this.#size -= below
    this.#join(0)
  }

  /** In ascending order, and of now: entries that come or go ahead of the walk count. */
  *entries(): Generator<Entry<V>> {
    let [at, index] = [0, 0]
    for (let chunk = this.#chunks[0]; chunk !== undefined; chunk = this.#chunks[at]) {
      if (index >= chunk.length) {
        at++
        index = 0
        continue
      }
      const [major, minor, changes] = [chunk.majors[index]!, chunk.minors[index]!, this.#changes]
      yield [major, minor, chunk.values[index]!]
      index++
      if (changes === this.#changes) continue
      at = this.#chunkAt(major, minor)
      index = this.#chunks[at]?.indexOf(major, minor) ?? 0
      if (this.#chunks[at]?.holds(index, major, minor)) index++
    }
  }

  /** Takes a moment for a million entries: the chunks are shared until either map changes them. */
  copy(): Chunks<V> {
    return this.shareWith(new Chunks<V>())
  }

  /** Makes an empty map a copy of this one, and answers it. */
  shareWith<Copy extends Chunks<V>>(copy: Copy): Copy {
    copy.#chunks = this.#chunks.slice()
    copy.#size = this.#size
    this.#owner = {}
    return copy
  }

  /** Of the last chunk that begins at or below the key, or of the first one. */
  #chunkAt(major: number, minor: number): number {
    const chunks = this.#chunks
    let low = 0
    let high = chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      const { majors, minors } = chunks[middle]!
      const begin = majors[0]!
      if (begin < major || (begin === major && minors[0]! <= minor)) low = middle
      else high = middle - 1
    }
    return low
  }

  #own(at: number): Chunk<V> {
    const chunk = this.#chunks[at]!
    if (chunk.owner === this.#owner) return chunk
    const own = chunk.slice(this.#owner)
    this.#chunks[at] = own
    return own
  }

  /** Answers where the entry goes that has no room at this index. What comes in order fills its chunks. */
  #split(at: number, index: number): [Chunk<V>, number] {
    const lower = this.#chunks[at]!
    const isAtEnd = at === this.#chunks.length - 1 && index === MOST
    const half = isAtEnd ? MOST : MOST / 2
    const upper = lower.slice(this.#owner, half)
    lower.remove(half, MOST)
    this.#chunks.splice(at + 1, 0, upper)
    return index < half ? [lower, index] : [upper, index - half]
  }

  /** Few entries do not hold many chunks: one that is nearly empty goes into the one before it. */
  #join(at: number): void {
    const chunk = this.#chunks[at]!
    if (chunk.length === 0) this.#chunks.splice(at, 1)
    else if (at > 0 && chunk.length + this.#chunks[at - 1]!.length <= MOST / 4) {
      this.#own(at - 1).append(chunk)
      this.#chunks.splice(at, 1)
    }
  }
}

function entryOf<V>(chunk: Chunk<V> | undefined, index: number): Entry<V> | undefined {
  return chunk && [chunk.majors[index]!, chunk.minors[index]!, chunk.values[index]!]
}
