/** A binary heap: the first by `before` is at hand, everything else in O(log n). */
export class Heap<T> {
  readonly #before: (one: T, other: T) => boolean
  readonly #placed: (entry: T, index: number) => void
  readonly #entries: T[] = []

  /** `placed`: called with each new index of an entry, and with -1 when it leaves. */
  constructor(before: (one: T, other: T) => boolean, placed: (entry: T, index: number) => void = () => {}) {
    this.#before = before
    this.#placed = placed
  }

  get size(): number {
    return this.#entries.length
  }

  /** undefined when empty. */
  get first(): T | undefined {
    return this.#entries[0]
  }

  push(entry: T): void {
    this.#entries.push(entry)
    this.#rise(entry, this.#entries.length - 1)
  }

  /** Takes the first out. Throws when empty. */
  pop(): void {
    if (this.#entries.length === 0) throw new Error('the heap is empty')
    this.remove(0)
  }

  /** Takes out what stands at `index`, as `placed` was told. */
  remove(index: number): void {
    const entries = this.#entries
    const removed = entries[index]
    if (removed === undefined) throw new Error(`nothing stands at ${index}`)
    const last = entries.pop()!
    this.#placed(removed, -1)
    if (index === entries.length) return
    if (index > 0 && this.#before(last, entries[(index - 1) >> 1]!)) this.#rise(last, index)
    else this.#sink(last, index)
  }

  #rise(entry: T, from: number): void {
    let at = from
    while (at > 0 && this.#before(entry, this.#entries[(at - 1) >> 1]!)) {
      this.#place(this.#entries[(at - 1) >> 1]!, at)
      at = (at - 1) >> 1
    }
    this.#place(entry, at)
  }

  #sink(entry: T, from: number): void {
    const entries = this.#entries
    let at = from
    for (let child = 2 * at + 1; child < entries.length; child = 2 * at + 1) {
      if (child + 1 < entries.length && this.#before(entries[child + 1]!, entries[child]!)) child++
      if (!this.#before(entries[child]!, entry)) break
      this.#place(entries[child]!, at)
      at = child
    }
    this.#place(entry, at)
  }

  #place(entry: T, index: number): void {
    this.#entries[index] = entry
    this.#placed(entry, index)
  }
}
