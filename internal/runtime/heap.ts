/** A binary heap: the first by `before` is at hand, everything else in O(log n). */
export class Heap<T> {
  readonly #before: (one: T, other: T) => boolean
  readonly #entries: T[] = []

  constructor(before: (one: T, other: T) => boolean) {
    this.#before = before
  }

  /** undefined when empty. */
  get first(): T | undefined {
    return this.#entries[0]
  }

  push(entry: T): void {
    const entries = this.#entries
    let at = entries.push(entry) - 1
    while (at > 0 && this.#before(entry, entries[(at - 1) >> 1]!)) {
      entries[at] = entries[(at - 1) >> 1]!
      at = (at - 1) >> 1
    }
    entries[at] = entry
  }

  /** Takes the first out. Throws when empty. */
  pop(): void {
    const entries = this.#entries
    const last = entries.pop()
    if (last === undefined) throw new Error('the heap is empty')
    if (entries.length === 0) return
    let at = 0
    for (let child = 1; child < entries.length; child = 2 * at + 1) {
      if (child + 1 < entries.length && this.#before(entries[child + 1]!, entries[child]!)) child++
      if (!this.#before(entries[child]!, last)) break
      entries[at] = entries[child]!
      at = child
    }
    entries[at] = last
  }
}
